#include "config/api_keys.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sstream>

#include "config/sha256.h"

namespace neap::config {

namespace {

constexpr std::size_t keys_max = 10'000;
constexpr off_t file_max = 4 << 20;
constexpr std::size_t id_size = 12;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_team_word(std::string_view text) {
  return !text.empty() && text.size() <= 63 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

bool is_class(std::string_view text) { return text == "high" || text == "normal" || text == "low"; }

tl::unexpected<Error> system_error(const char* doing, const std::string& path) {
  const bool denied = errno == EACCES || errno == EPERM;
  return fail(denied ? ErrorCode::permission_denied : ErrorCode::unavailable,
              std::string(doing) + ": " + std::strerror(errno), path);
}

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

Result<std::vector<ApiKey>> read_from(int fd, const std::string& path) {
  struct stat known {};
  if (fstat(fd, &known) != 0) return system_error("cannot look at the keys", path);
  if ((known.st_mode & 077U) != 0 || known.st_uid != geteuid()) {
    return fail(ErrorCode::permission_denied,
                "holds keys: expected mode 0600 and no other owner than us", path);
  }
  if (known.st_size > file_max) {
    return fail(ErrorCode::invalid_argument, "is over 4 MiB; expected at most 10000 keys", path);
  }
  std::string text(static_cast<std::size_t>(known.st_size), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = pread(fd, text.data() + have, text.size() - have, static_cast<off_t>(have));
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return parse_keys(text, path);
}

Result<void> store(const std::string& path, const std::vector<ApiKey>& keys) {
  const std::string next = path + ".new";
  const File file(open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return system_error("cannot write the keys", next);
  const std::string text = render_keys(keys);
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      fsync(file.get()) != 0) {
    return system_error("cannot write the keys", next);
  }
  if (rename(next.c_str(), path.c_str()) != 0) return system_error("cannot rename", next);
  return {};
}

// Calls `change` with the keys while no other writer is at them, and stores what it leaves.
template <class Change>
Result<void> change_keys(const std::string& path, Change change) {
  const std::string lock_path = path + ".lock";
  const File lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.get() < 0) return system_error("cannot lock the keys", lock_path);
  if (flock(lock.get(), LOCK_EX) != 0) return system_error("cannot lock the keys", lock_path);
  Result<std::vector<ApiKey>> keys = load_keys(path);
  if (!keys) return tl::unexpected(keys.error());
  if (Result<void> changed = change(*keys); !changed) return changed;
  return store(path, *keys);
}

Result<std::string> random_secret() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return fail(ErrorCode::unavailable, "the system gives no random bytes");
  }
  std::string secret = "neap-";
  for (const unsigned char byte : bytes) {
    secret += "0123456789abcdef"[byte >> 4U];
    secret += "0123456789abcdef"[byte & 0xfU];
  }
  return secret;
}

}  // namespace

namespace {

struct KeyFault {
  const char* field = nullptr;
  const char* expected = nullptr;
};

// What of a line is wrong; nothing: it is a key.
std::optional<KeyFault> fault_of_key(const ApiKey& key, bool whole) {
  if (key.id.size() != id_size || !is_hex(key.id)) return KeyFault{"id", "12 of 0-9a-f"};
  if (key.digest.size() != 64 || !is_hex(key.digest) || !key.digest.starts_with(key.id)) {
    return KeyFault{"SHA-256", "64 of 0-9a-f that begin with the id"};
  }
  if (!is_team_word(key.team)) {
    return KeyFault{"team", "1 to 63 letters, digits, '-', '_' and '.'"};
  }
  if (!is_class(key.highest)) return KeyFault{"class", "high, normal or low"};
  if (!whole) {
    return KeyFault{"created", "when it was created, in µs since the epoch, and nothing after it"};
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<ApiKey>> parse_keys(std::string_view text, const std::string& path) {
  std::vector<ApiKey> keys;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    std::istringstream fields(line);
    ApiKey key;
    std::string rest;
    fields >> key.id >> key.digest >> key.team >> key.highest >> key.created.us;
    const bool whole = static_cast<bool>(fields) && !(fields >> rest);
    if (const auto fault = fault_of_key(key, whole)) {
      return fail(ErrorCode::invalid_argument,
                  std::string("is no key; expected ") + fault->expected,
                  path + ":" + std::to_string(number) + ": " + fault->field);
    }
    keys.push_back(std::move(key));
    if (keys.size() > keys_max) {
      return fail(ErrorCode::invalid_argument, "is one key too many; expected at most 10000",
                  path + ":" + std::to_string(number));
    }
  }
  return keys;
}

std::string render_keys(const std::vector<ApiKey>& keys) {
  std::string out = "# Written by neap keys: id, SHA-256 of the key, team, class, created\n";
  for (const ApiKey& key : keys) {
    out += key.id + " " + key.digest + " " + key.team + " " + key.highest + " " +
           std::to_string(key.created.us) + "\n";
  }
  return out;
}

Result<std::vector<ApiKey>> load_keys(const std::string& path) {
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT) return std::vector<ApiKey>();
  if (file.get() < 0) return system_error("cannot read the keys", path);
  return read_from(file.get(), path);
}

Result<CreatedKey> create_key(const std::string& path, const std::string& team,
                              const std::string& highest, Time now) {
  if (!is_team_word(team)) {
    return fail(ErrorCode::invalid_argument,
                "expected a team: 1 to 63 letters, digits, '-', '_' and '.'", "team");
  }
  if (!is_class(highest)) {
    return fail(ErrorCode::invalid_argument, "expected high, normal or low", "class");
  }
  const Result<std::string> secret = random_secret();
  if (!secret) return tl::unexpected(secret.error());
  CreatedKey made{.secret = *secret, .key = {}};
  made.key.digest = sha256_hex(made.secret);
  made.key.id = made.key.digest.substr(0, id_size);
  made.key.team = team;
  made.key.highest = highest;
  made.key.created = now;
  const Result<void> stored = change_keys(path, [&](std::vector<ApiKey>& keys) -> Result<void> {
    if (keys.size() >= keys_max) {
      return fail(ErrorCode::exhausted, "there are 10000 keys; revoke some", path);
    }
    keys.push_back(made.key);
    return {};
  });
  if (!stored) return tl::unexpected(stored.error());
  return made;
}

Result<void> revoke_key(const std::string& path, const std::string& id) {
  return change_keys(path, [&](std::vector<ApiKey>& keys) -> Result<void> {
    if (std::erase_if(keys, [&](const ApiKey& key) { return key.id == id; }) > 0) return {};
    return fail(ErrorCode::not_found, "no key has the id '" + id + "'", path);
  });
}

}  // namespace neap::config
