#include "base/error.h"

namespace zeroth {

int exit_code(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kConfig:
    case ErrorKind::kNotSupported:
    case ErrorKind::kUsage:
      return 2;
    case ErrorKind::kData:
      return 3;
    case ErrorKind::kModel:
    case ErrorKind::kCheckpoint:
    case ErrorKind::kFormat:
      return 4;
    case ErrorKind::kCommunication:
      return 5;
    case ErrorKind::kMemory:
    case ErrorKind::kDevice:
    case ErrorKind::kDisk:
      return 6;
    case ErrorKind::kInternal:
      break;
  }
  return 70;
}

const char* kind_name(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kConfig:
      return "configuration error";
    case ErrorKind::kNotSupported:
      return "not supported";
    case ErrorKind::kUsage:
      return "usage error";
    case ErrorKind::kData:
      return "data error";
    case ErrorKind::kModel:
      return "model error";
    case ErrorKind::kCheckpoint:
      return "checkpoint error";
    case ErrorKind::kFormat:
      return "format error";
    case ErrorKind::kCommunication:
      return "communication error";
    case ErrorKind::kMemory:
      return "memory error";
    case ErrorKind::kDevice:
      return "device error";
    case ErrorKind::kDisk:
      return "disk error";
    case ErrorKind::kInternal:
      break;
  }
  return "internal error";
}

}  // namespace zeroth
