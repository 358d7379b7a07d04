// Text as gzip data, for tests.
#pragma once

#include <string>

namespace neap::trace {

[[nodiscard]] std::string gzipped(const std::string& text);

}  // namespace neap::trace
