// The keys by which teams' requests are told apart: a file of mode 0600 with a line for each,
//
//   ID SHA256 TEAM CLASS CREATED_US
//
// The key itself is shown once, when it is created, and stored nowhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/result.h"
#include "core/model/units.h"

namespace neap::config {

struct ApiKey {
  std::string id;      // 12 of 0-9a-f: the beginning of the digest
  std::string digest;  // SHA-256 of the key, 64 of 0-9a-f
  std::string team;
  std::string highest = "high";  // class that its requests may ask for, and have without asking
  Time created;
  bool operator==(const ApiKey&) const = default;
};

struct CreatedKey {
  std::string secret;
  ApiKey key;
};

// A faulty line is an error that names it. 10,000 keys at most.
[[nodiscard]] Result<std::vector<ApiKey>> parse_keys(std::string_view text,
                                                     const std::string& path);
[[nodiscard]] std::string render_keys(const std::vector<ApiKey>& keys);

// No file is no keys. permission_denied: others may read it, or it is not ours.
[[nodiscard]] Result<std::vector<ApiKey>> load_keys(const std::string& path);

// 256 bits of the system's randomness. Written before it returns; one writer at a time.
[[nodiscard]] Result<CreatedKey> create_key(const std::string& path, const std::string& team,
                                            const std::string& highest, Time now);
// not_found where no key has this id.
[[nodiscard]] Result<void> revoke_key(const std::string& path, const std::string& id);

}  // namespace neap::config
