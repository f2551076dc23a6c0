#pragma once

namespace zeroth::formats::pickle {

// Those that state dictionaries use, as Python's pickletools names them.
enum Opcode : unsigned char {
  kMark = '(',
  kStop = '.',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinFloat = 'G',
  kBinUnicode = 'X',
  kShortBinUnicode = 0x8c,
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kGlobal = 'c',
  kStackGlobal = 0x93,
  kReduce = 'R',
  kBuild = 'b',
  kBinPersId = 'Q',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kBinGet = 'h',
  kLongBinGet = 'j',
  kProto = 0x80,
  kFrame = 0x95
};

}  // namespace zeroth::formats::pickle
