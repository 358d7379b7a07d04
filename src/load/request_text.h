// The bytes of a request, from its target and what differs from one to the next.
#pragma once

#include <cstdint>
#include <string>

#include "load/generator.h"

namespace neap::load {

class RequestText {
 public:
  // Copies what it needs. invalid_argument: a header or path that would break the request apart.
  [[nodiscard]] static Result<RequestText> make(const LoadOptions& options);

  [[nodiscard]] std::string of(std::uint64_t number, std::uint32_t load_class,
                               const TraceArrival& arrival) const;

  static constexpr std::size_t body_max = std::size_t{1} << 20;
  static constexpr std::int64_t words_max = 100'000;  // of {input_text}

 private:
  struct Piece {
    enum class Kind : std::uint8_t { text, number, input_tokens, output_tokens, input_text } kind{};
    std::string text;
  };

  std::string head_;
  std::string request_ids_;
  std::vector<std::string> class_lines_;
  std::vector<Piece> body_;
};

}  // namespace neap::load
