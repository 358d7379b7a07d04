// neap load: open-loop load on a service of the pool, or on any other that speaks HTTP.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/context.h"
#include "load/generator.h"

namespace neap::cli {

struct LoadVerbOptions {
  std::string target;  // a service's name, or http://HOST:PORT[/PATH]
  double rate = 1;     // requests a second
  std::string arrivals = "poisson";
  std::string length = "60s";
  std::string trace;
  double speed = 1;  // of the trace
  bool day = false;
  double day_rate = 0;    // 0: twice the rate
  double burst_rate = 0;  // 0: six times the rate
  std::string path;       // empty: the URL's, else /v1/completions
  std::string body;
  std::string body_file;
  std::string model;
  std::string prompt = "Tell me of the tide. {n}";
  std::int64_t max_tokens = 32;
  bool get = false;
  std::vector<std::string> headers;
  std::string key_file;
  std::string mix;
  std::string class_header = "X-Priority";
  std::string request_ids;
  std::string timeout = "60s";
  std::int64_t in_flight = 1024;
  std::string keep_alive = "0s";
  std::int64_t seed = 1;
  std::string slo_first_byte;
  std::string slo_total;
  std::string log;
  bool realtime = false;
  bool json = false;
};
// 0 when at least one request was answered well, else 1; what went wrong is in the report.
int load_service(const Context& context, const LoadVerbOptions& options);

// The parts of it.
[[nodiscard]] Result<std::string> url_of(const Context& context, const LoadVerbOptions& options);
[[nodiscard]] Result<load::LoadOptions> load_options_of(const LoadVerbOptions& options,
                                                        const std::string& url);
// "high=10,normal=30"
[[nodiscard]] Result<std::vector<load::LoadClass>> parse_mix(const std::string& text);
// Arrivals of a file, the first at 0, so many times as fast.
[[nodiscard]] Result<std::vector<load::TraceArrival>> read_load_trace(const std::string& path,
                                                                      double speed);
void print_load(Terminal& terminal, const load::LoadOptions& options,
                const load::LoadSummary& summary);
[[nodiscard]] std::string load_json(const load::LoadOptions& options,
                                    const load::LoadSummary& summary, const std::string& note);

}  // namespace neap::cli
