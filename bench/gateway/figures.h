// What the modes of gateway_bench share: percentiles of answers, and one line of JSON at the end.
#pragma once

#include <cstdio>

#include "bench/gateway/client.h"
#include "bench/measure.h"

namespace neap::bench {

class Json {
 public:
  void add(const std::string& name, double value) {
    char text[64];
    std::snprintf(text, sizeof text, "%.6g", value);
    out_ += (out_.empty() ? "\"" : ", \"") + name + "\": " + text;
  }
  void print() const { std::printf("{%s}\n", out_.c_str()); }

 private:
  std::string out_;
};

inline void fail_bench(const std::string& why) {
  std::fprintf(stderr, "gateway_bench: %s\n", why.c_str());
  std::exit(1);
}

}  // namespace neap::bench
