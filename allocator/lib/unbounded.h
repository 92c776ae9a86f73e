// The error of an allocator that cannot be bounded.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "allocator.h"

// Throws std::invalid_argument with the file name of this module, which is the variant's name.
[[noreturn]] inline void refuse_limit() {
  Dl_info module{};
  dladdr(reinterpret_cast<const void*>(&make_allocator), &module);
  const std::string path = module.dli_fname != nullptr ? module.dli_fname : "";
  const size_t start = path.find_last_of('/') + 1;
  throw std::invalid_argument("limit: expected an allocator that can be bounded, got " +
                              path.substr(start, path.find('.', start) - start));
}
