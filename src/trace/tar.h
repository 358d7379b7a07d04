// The files within a tar archive, one after the other, as streams.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/model/result.h"
#include "trace/bytes.h"

namespace neap::trace {

class TarReader {
 public:
  explicit TarReader(Bytes archive);
  ~TarReader();
  TarReader(TarReader&&) noexcept;
  TarReader& operator=(TarReader&&) noexcept;

  // The next regular file: a stream named "archive:member". What was not read of the one before
  // is passed over, and that one may not be read any more. Nothing after the last.
  [[nodiscard]] Result<std::optional<Bytes>> next();

 private:
  struct Archive;
  std::shared_ptr<Archive> archive_;
};

}  // namespace neap::trace
