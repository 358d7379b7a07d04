#include "cli/load.h"

#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "cli/load_log.h"
#include "config/text.h"
#include "config/values.h"
#include "load/realtime.h"
#include "trace/read_all.h"
#include "trace/requests.h"

namespace neap::cli {
namespace {

constexpr std::size_t trace_rows_max = 5'000'000;
constexpr std::size_t classes_max = 16;
constexpr Micros longest_load = hours(24 * 7);

tl::unexpected<Error> bad(std::string expected, std::string option) {
  return fail(ErrorCode::invalid_argument, std::move(expected), std::move(option));
}

// A length of time that may be "0s" or not given.
Result<Micros> length_of(const char* option, const std::string& text) {
  if (text.empty() || text == "0" || text == "0s") return Micros(0);
  const auto parsed = config::parse_duration(text);
  if (!parsed) return bad(parsed.error(), option);
  return *parsed;
}

Result<void> resolve(const std::string& host, std::uint16_t port, load::Target& into) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return bad(std::string("cannot be found: ") + gai_strerror(error), host);
  std::array<char, 64> numeric{};
  getnameinfo(found->ai_addr, found->ai_addrlen, numeric.data(), numeric.size(), nullptr, 0,
              NI_NUMERICHOST);
  freeaddrinfo(found);
  into.address = numeric.data();
  into.port = port;
  return {};
}

// http://HOST[:PORT][/PATH], HOST in brackets where it is an IPv6 address.
Result<void> read_url(std::string_view url, load::Target& into) {
  constexpr std::string_view scheme = "http://";
  if (url.starts_with("https://")) {
    return bad("TLS is not spoken; a proxy on this machine can, such as stunnel", std::string(url));
  }
  if (!url.starts_with(scheme)) return bad("expected http://HOST:PORT/PATH", std::string(url));
  std::string_view rest = url.substr(scheme.size());
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos) into.path = rest.substr(slash);
  rest = rest.substr(0, slash);
  into.host = rest;
  std::string_view host = rest;
  std::string_view port;
  const std::size_t bracket = rest.find(']');
  const std::size_t colon = rest.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    host = rest.substr(0, colon);
    port = rest.substr(colon + 1);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  std::uint16_t number = 80;
  if (!port.empty()) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc() || end != port.data() + port.size() || number == 0) {
      return bad("expected a port of 1 to 65535", std::string(url));
    }
  }
  if (host.empty()) return bad("expected http://HOST:PORT/PATH", std::string(url));
  return resolve(std::string(host), number, into);
}

Result<std::string> body_of(const LoadVerbOptions& o) {
  if (o.get) return std::string();
  if (!o.body.empty()) return o.body;
  if (!o.body_file.empty()) return config::read_file(o.body_file);
  std::string body = "{";
  if (!o.model.empty()) body += "\"model\": " + json_text(o.model) + ", ";
  const bool sized = !o.trace.empty();
  body += "\"prompt\": " + json_text(sized ? "{input_text} {n}" : o.prompt) +
          ", \"max_tokens\": " + (sized ? "{output_tokens}" : std::to_string(o.max_tokens)) +
          ", \"stream\": true}";
  return body;
}

Result<load::RateCurve> curve_of(const LoadVerbOptions& o) {
  const Result<Micros> length = length_of("--duration", o.length);
  if (!length) return tl::unexpected(length.error());
  if (*length <= Micros(0) || *length > longest_load) {
    return bad("expected a length of time above 0, of 7 days at most", "--duration");
  }
  if (!(o.rate > 0) || !std::isfinite(o.rate)) return bad("expected a rate above 0", "--rate");
  if (!o.day) return load::RateCurve::constant(o.rate, *length);
  const auto day =
      load::make_day({.length = *length,
                      .night_per_second = o.rate,
                      .day_per_second = o.day_rate > 0 ? o.day_rate : 2 * o.rate,
                      .burst_per_second = o.burst_rate > 0 ? o.burst_rate : 6 * o.rate});
  if (!day) return tl::unexpected(day.error());
  return day->curve;
}

template <class Reader>
Result<std::vector<load::TraceArrival>> arrivals_in(const std::string& path) {
  const auto rows = trace::read_file<trace::Request, Reader>(path, trace_rows_max);
  if (!rows) return tl::unexpected(rows.error());
  std::vector<load::TraceArrival> all;
  all.reserve(rows->size());
  for (const trace::Request& row : *rows) {
    all.push_back({Micros(row.at.us), row.input_tokens, row.output_tokens});
  }
  return all;
}

// SIGINT ends the run; what was measured so far is reported.
class EndOnSignal {
 public:
  explicit EndOnSignal(std::stop_source& stop) {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
    watcher_ = std::jthread([this, &stop](const std::stop_token& end) {
      const timespec patience{.tv_sec = 0, .tv_nsec = 100'000'000};
      while (!end.stop_requested()) {
        if (sigtimedwait(&set_, nullptr, &patience) > 0) stop.request_stop();
      }
    });
  }
  ~EndOnSignal() {
    watcher_.request_stop();
    watcher_.join();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  EndOnSignal(const EndOnSignal&) = delete;
  EndOnSignal& operator=(const EndOnSignal&) = delete;

 private:
  sigset_t set_{};
  sigset_t before_{};
  std::jthread watcher_;
};

}  // namespace

Result<std::string> url_of(const Context& context, const LoadVerbOptions& options) {
  if (options.target.find("://") != std::string::npos) return options.target;
  const auto service = context.get("/v1/services/" + part(options.target));
  if (!service) return tl::unexpected(service.error());
  const std::string address = service->at("service").text_at("address");
  if (address.empty()) {
    return fail(ErrorCode::unavailable, "the service takes no requests", options.target);
  }
  return address;
}

namespace {

Result<load::LoadSummary> run_on_own_thread(const load::LoadOptions& options,
                                            const load::LoadObserver& observer, bool realtime,
                                            std::string& note) {
  std::stop_source stop;
  const EndOnSignal interrupt(stop);
  std::optional<Result<load::LoadSummary>> summary;
  std::thread([&] {
    if (realtime) {
      if (const Result<void> done = load::become_realtime(); !done) note = done.error().message;
    }
    summary = load::run_load(options, observer, stop.get_token());
  }).join();
  return std::move(*summary);
}

}  // namespace

Result<std::vector<load::LoadClass>> parse_mix(const std::string& text) {
  std::vector<load::LoadClass> classes;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view one = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t equals = one.find('=');
    load::LoadClass parsed{.name = std::string(one.substr(0, equals)), .weight = 0};
    if (equals != std::string_view::npos) {
      const std::string_view weight = one.substr(equals + 1);
      const auto [end, error] =
          std::from_chars(weight.data(), weight.data() + weight.size(), parsed.weight);
      if (error != std::errc() || end != weight.data() + weight.size() ||
          parsed.weight > 1'000'000) {
        parsed.weight = 0;
      }
    }
    const bool twice = std::ranges::any_of(
        classes, [&](const load::LoadClass& other) { return other.name == parsed.name; });
    if (parsed.name.empty() || parsed.weight == 0 || twice || classes.size() == classes_max) {
      return bad(
          "expected NAME=WEIGHT,... such as high=10,low=60: weights of 1 to 1000000, 16 at "
          "most, each name once",
          "--mix");
    }
    classes.push_back(std::move(parsed));
  }
  return classes;
}

Result<std::vector<load::TraceArrival>> read_load_trace(const std::string& path, double speed) {
  if (!(speed > 0) || !std::isfinite(speed)) return bad("expected a number above 0", "--speed");
  auto bytes = trace::open_bytes(path);
  if (!bytes) return tl::unexpected(bytes.error());
  trace::LineReader lines(std::move(*bytes));
  const auto first = lines.next();
  if (!first) return tl::unexpected(first.error());
  const std::string_view head = first->value_or("");
  auto all = head.starts_with('{')           ? arrivals_in<trace::MooncakeReader>(path)
             : head.starts_with("TIMESTAMP") ? arrivals_in<trace::AzureReader>(path)
                                             : arrivals_in<trace::ArrivalReader>(path);
  if (!all) return all;
  if (all->empty()) return fail(ErrorCode::invalid_argument, "has no requests", path);
  std::ranges::stable_sort(*all, {}, &load::TraceArrival::at);
  const Micros began = all->front().at;
  for (load::TraceArrival& one : *all) {
    one.at = Micros(std::llround(static_cast<double>((one.at - began).value) / speed));
  }
  if (all->back().at > longest_load)
    return bad("the trace is longer than 7 days; --speed helps", path);
  return all;
}

Result<load::LoadOptions> load_options_of(const LoadVerbOptions& o, const std::string& url) {
  auto curve = curve_of(o);
  if (!curve) return tl::unexpected(curve.error());
  load::LoadOptions made{.curve = std::move(*curve)};
  made.seed = static_cast<std::uint64_t>(o.seed);
  made.spacing = o.arrivals == "constant" ? load::Spacing::even : load::Spacing::poisson;
  if (auto read = read_url(url, made.target); !read) return tl::unexpected(read.error());
  if (!o.path.empty()) made.target.path = o.path;
  auto body = body_of(o);
  if (!body) return tl::unexpected(body.error());
  made.target.body = std::move(*body);
  made.target.headers = o.headers;
  if (!o.key_file.empty()) {
    auto key = config::read_file(o.key_file);
    if (!key) return tl::unexpected(key.error());
    while (!key->empty() && (key->back() == '\n' || key->back() == '\r')) key->pop_back();
    made.target.headers.push_back("Authorization: Bearer " + *key);
  }
  auto classes = parse_mix(o.mix);
  if (!classes) return tl::unexpected(classes.error());
  made.classes = std::move(*classes);
  made.class_header = o.class_header;
  made.request_ids = o.request_ids;
  made.in_flight_max = static_cast<std::uint32_t>(o.in_flight);
  const Result<Micros> lengths[] = {
      length_of("--timeout", o.timeout), length_of("--keep-alive", o.keep_alive),
      length_of("--slo-first-byte", o.slo_first_byte), length_of("--slo-total", o.slo_total)};
  for (const Result<Micros>& one : lengths) {
    if (!one) return tl::unexpected(one.error());
  }
  if (*lengths[0] <= Micros(0)) return bad("expected a length of time above 0", "--timeout");
  made.timeout = *lengths[0];
  made.keep_idle = *lengths[1];
  made.objective = {.first_byte = *lengths[2], .total = *lengths[3]};
  if (!o.trace.empty()) {
    auto trace = read_load_trace(o.trace, o.speed);
    if (!trace) return tl::unexpected(trace.error());
    made.trace = std::move(*trace);
  }
  return made;
}

int load_service(const Context& context, const LoadVerbOptions& options) {
  const auto url = url_of(context, options);
  if (!url) return context.failed(url.error());
  auto made = load_options_of(options, *url);
  if (!made) return context.failed(made.error());
  std::unique_ptr<LoadLog> log;
  if (!options.log.empty()) {
    auto opened = LoadLog::open(options.log, made->classes);
    if (!opened) return context.failed(opened.error());
    log = std::move(*opened);
  }
  load::raise_open_files();
  Terminal& terminal = context.terminal();
  load::LoadObserver observer;
  if (log) observer.result = [&](const load::RequestResult& result) { log->add(result); };
  if (terminal.interactive() && !options.json) {
    observer.progress = [&](const load::LoadProgress& progress) {
      terminal.status(std::to_string(progress.elapsed.value / 1'000'000) + " s, " +
                      std::to_string(progress.so_far->scheduled) + " requests, " +
                      std::to_string(progress.in_flight) + " in flight, " +
                      std::to_string(progress.so_far->failed()) + " failed");
    };
  }
  std::string note;
  const auto summary = run_on_own_thread(*made, observer, options.realtime, note);
  terminal.status("");
  if (!summary) return context.failed(summary.error());
  if (log) {
    if (const Result<void> closed = log->close(); !closed) return context.failed(closed.error());
  }
  if (options.json) {
    terminal.line(load_json(*made, *summary, note));
  } else {
    if (!note.empty()) terminal.complain("neap: " + note);
    print_load(terminal, *made, *summary);
  }
  return summary->count(load::Outcome::ok) > 0 ? 0 : 1;
}

}  // namespace neap::cli
