#include <charconv>

#include "cli/demo.h"

namespace neap::cli {
namespace {

constexpr std::int64_t shortest = 90;  // below, the burst is over before the pool has answered it
constexpr std::int64_t longest = 3600;

Result<std::int64_t> number(const std::string& option, const std::string& text, std::int64_t least,
                            std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    return fail(ErrorCode::invalid_argument,
                "expected " + std::to_string(least) + " to " + std::to_string(most), option);
  }
  return value;
}

Result<void> set(DemoOptions& options, const std::string& name, const std::string& value) {
  if (name == "--seconds") {
    const Result<std::int64_t> length = number(name, value, shortest, longest);
    if (!length) return tl::unexpected(length.error());
    options.length = seconds(*length);
  } else if (name == "--seed") {
    const Result<std::int64_t> seed = number(name, value, 0, 1'000'000'000);
    if (!seed) return tl::unexpected(seed.error());
    options.seed = static_cast<std::uint64_t>(*seed);
  } else if (name == "--dir") {
    options.folder = value;
  } else if (name == "--examples") {
    options.examples = value;
  } else {
    options.python = value;
  }
  return {};
}

bool takes_value(const std::string& name) {
  return name == "--seconds" || name == "--seed" || name == "--dir" || name == "--examples" ||
         name == "--python";
}

}  // namespace

std::string demo_usage() {
  return "Usage: neap demo [OPTIONS]\n"
         "Shows the pool at work on this machine: simulated devices, real processes.\n"
         "  --seconds N      length of the compressed day, 90 to 3600 (120)\n"
         "  --keep           leave the pool running, and say how to stop it\n"
         "  --json           end with one JSON object, progress goes to standard error\n"
         "  --seed N         of the arrivals of requests (1)\n"
         "  --dir DIR        new or empty folder for everything (one under /tmp)\n"
         "  --examples DIR   folder with train.py and serve.py\n"
         "  --python PATH    interpreter with torch (/usr/bin/python3)\n";
}

Result<DemoOptions> parse_demo_options(const std::vector<std::string>& words) {
  DemoOptions options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string name = words[i];
    if (name == "--keep") {
      options.afterwards = Afterwards::keep_running;
      continue;
    }
    if (name == "--json") {
      options.report = Report::json;
      continue;
    }
    std::string value;
    const std::size_t equals = name.find('=');
    const bool attached = equals != std::string::npos;
    if (attached) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    if (!takes_value(name)) {
      return fail(ErrorCode::invalid_argument, "no such option of neap demo; see --help", words[i]);
    }
    if (!attached) {
      if (++i == words.size()) {
        return fail(ErrorCode::invalid_argument, "a value is missing", name);
      }
      value = words[i];
    }
    if (Result<void> done = set(options, name, value); !done) {
      return tl::unexpected(done.error());
    }
  }
  return options;
}

}  // namespace neap::cli
