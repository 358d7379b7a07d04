// What all encoders share. The order of members is that in which they are written.
#pragma once

#include <cstdint>
#include <string>

// tidy-allow(header-include): names alone; the library itself stays in .cpp files
#include <nlohmann/json_fwd.hpp>

namespace neap::api {

using OrderedJson = nlohmann::ordered_json;

// null where it is not known.
[[nodiscard]] OrderedJson known(std::int64_t value);
// Logs, messages, and text of files and peers may hold broken UTF-8; it must be sent all the same.
[[nodiscard]] std::string dump(const OrderedJson& json);

}  // namespace neap::api
