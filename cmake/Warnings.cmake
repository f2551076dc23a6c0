# Warnings and sanitizers for our own targets; system headers are left alone.
add_library(zeroth_flags INTERFACE)
target_compile_options(zeroth_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow
  -Wno-missing-field-initializers)  # designated initialisers leave the rest at its default
if(ZEROTH_WERROR)
  target_compile_options(zeroth_flags INTERFACE -Werror)
endif()
if(ZEROTH_SANITIZE)
  target_compile_options(zeroth_flags INTERFACE -fsanitize=${ZEROTH_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(zeroth_flags INTERFACE -fsanitize=${ZEROTH_SANITIZE})
endif()
