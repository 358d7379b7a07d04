// The page that charts stand on: one HTML file without anything from elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap::whatif {

using KeyEntry = std::pair<std::string, std::string>;  // name, colour

[[nodiscard]] std::string page_begin(std::string_view title);
inline constexpr std::string_view page_end = "</body></html>\n";
// What the colours stand for.
[[nodiscard]] std::string key_of(const std::vector<KeyEntry>& entries);
[[nodiscard]] std::string section(const std::string& title, const std::string& body);

}  // namespace neap::whatif
