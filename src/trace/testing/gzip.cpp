#include "trace/testing/gzip.h"

#include <zlib.h>

#include "core/model/check.h"

namespace neap::trace {

std::string gzipped(const std::string& text) {
  z_stream stream{};
  constexpr int gzip_with_largest_window = 15 + 16;
  NEAP_CHECK(deflateInit2(&stream, 9, Z_DEFLATED, gzip_with_largest_window, 8,
                          Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  NEAP_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace neap::trace
