// Bytes of a recorded trace, decompressed on the way and never held as a whole.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/model/result.h"

namespace neap::trace {

class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Fills the front of `into`; 0 means the end. A source that ends within a compressed member,
  // or whose checksum is wrong, is an error and never a short trace.
  [[nodiscard]] virtual Result<std::size_t> read(std::span<char> into) = 0;
  // For errors: the path, or what a test calls it.
  [[nodiscard]] virtual const std::string& name() const = 0;
};

using Bytes = std::unique_ptr<ByteStream>;

// Gzip (several members too) is known by its first two bytes, not by the file's name.
[[nodiscard]] Result<Bytes> open_bytes(const std::string& path);
[[nodiscard]] Bytes bytes_of(std::string name, std::string text);

}  // namespace neap::trace
