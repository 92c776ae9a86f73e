// The error that PyTorch turns into torch.OutOfMemoryError.
//
// Without PyTorch's headers the variant still builds, and throws OutOfMemory.
#pragma once

#include "plug.h"

#if __has_include(<c10/util/Exception.h>)
#include <c10/util/Exception.h>

void throw_out_of_memory(const std::string& what) { C10_THROW_ERROR(OutOfMemoryError, what); }

#else

void throw_out_of_memory(const std::string& what) { throw OutOfMemory(what); }

#endif
