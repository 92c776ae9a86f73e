// Array arguments of bindings: type, shape and alignment are checked once, before any launch. As in
// require.h, everything here has internal linkage.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "require.h"

namespace {

// Alignment of memory that kernels access as 16-byte vectors, such as int4.
constexpr int kVectorAlignment = 16;

// A contiguous array in memory that Python owns.
struct Array {
  std::uintptr_t address;
  std::vector<int64_t> shape;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(address);
  }
};

// An extent of an expected shape: a length, or the name of an extent of any length from 1 on.
struct Extent {
  Extent(int64_t length) : length(length), name(std::to_string(length)) {}
  Extent(const char* name) : length(0), name(name) {}

  bool fits(int64_t got) const { return length == 0 ? got > 0 : got == length; }

  int64_t length;  // 0 for a name
  std::string name;
};

[[maybe_unused]] std::string text(const pybind11::handle& object) { return pybind11::str(object); }

template <class Extents, class Text>
std::string shape_text(const Extents& shape, const Text& text_of) {
  std::string extents;
  for (const auto& extent : shape) {
    extents += (extents.empty() ? "" : ", ") + text_of(extent);
  }
  return "(" + extents + ")";
}

// Raises a ValueError unless `shape` has the expected extents.
[[maybe_unused]] void require_shape(const std::vector<int64_t>& shape,
                                    const std::vector<Extent>& expected, const std::string& field) {
  bool fits = shape.size() == expected.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    fits = expected[i].fits(shape[i]);
  }
  require(fits, field,
          "shape " + shape_text(expected, [](const Extent& extent) { return extent.name; }),
          shape_text(shape, [](int64_t extent) { return std::to_string(extent); }));
}

// Raises a ValueError unless the address is a multiple of `alignment` bytes.
[[maybe_unused]] void require_aligned(std::uintptr_t address, int alignment,
                                      const std::string& field) {
  std::array<char, 20> got{};
  std::snprintf(got.data(), got.size(), "%#llx", static_cast<unsigned long long>(address));
  require(address % static_cast<std::uintptr_t>(alignment) == 0, field,
          "an address that is a multiple of " + std::to_string(alignment), got.data());
}

// Raises a ValueError unless `bytes` at this address are whole 16-byte vectors.
[[maybe_unused]] void require_vectors(std::uintptr_t address, int64_t bytes,
                                      const std::string& field) {
  require_aligned(address, kVectorAlignment, field);
  require(bytes > 0 && bytes % kVectorAlignment == 0, field,
          "a positive multiple of " + std::to_string(kVectorAlignment) + " bytes",
          std::to_string(bytes) + " bytes");
}

// A contiguous array that another library keeps in GPU memory, by its __cuda_array_interface__.
// `dtype` is a type string of that interface, such as "<i4".
[[maybe_unused]] Array device_array(const pybind11::object& object, const std::string& field,
                                    const std::string& dtype, const std::vector<Extent>& shape,
                                    int alignment) {
  require(pybind11::hasattr(object, "__cuda_array_interface__"), field, "an array in GPU memory",
          text(pybind11::type::of(object)));
  const pybind11::dict interface = object.attr("__cuda_array_interface__");
  const std::string got = text(interface["typestr"]);
  require(got == dtype, field, "elements of type " + dtype, got);
  const pybind11::object strides = interface.attr("get")("strides");
  require(strides.is_none(), field, "a contiguous array", "strides " + text(strides));
  const Array array = {interface["data"].cast<pybind11::tuple>()[0].cast<std::uintptr_t>(),
                       interface["shape"].cast<std::vector<int64_t>>()};
  require_shape(array.shape, shape, field);
  require_aligned(array.address, alignment, field);
  return array;
}

// A contiguous NumPy array of T in host memory. `dtype` is its type in messages, such as "uint8".
template <class T>
Array host_array(const pybind11::array& given, const std::string& field, const std::string& dtype,
                 const std::vector<Extent>& shape, int alignment) {
  require(pybind11::isinstance<pybind11::array_t<T>>(given), field, "elements of type " + dtype,
          text(given.dtype()));
  const Array array = {reinterpret_cast<std::uintptr_t>(given.data()),
                       {given.shape(), given.shape() + given.ndim()}};
  require_shape(array.shape, shape, field);
  require((given.flags() & pybind11::array::c_style) != 0, field, "a contiguous array",
          "a strided one");
  require_aligned(array.address, alignment, field);
  return array;
}

}  // namespace
