// Reads one HTTP/1.1 response as it comes in, and notes the server-sent events in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace neap::load {

class ResponseReader {
 public:
  enum class State : std::uint8_t { reading, complete, malformed };

  // What a piece of input brought.
  struct Progress {
    std::int32_t events = 0;       // `data:` events with something in them, [DONE] not counted
    bool first_body_byte = false;  // of an event's data; of the body where there are no events
  };

  Progress feed(std::string_view bytes);
  // The server closed the connection.
  void end();

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] std::int32_t status() const { return status_; }
  // Of a complete one: whether its connection takes another request.
  [[nodiscard]] bool reusable() const;
  [[nodiscard]] bool begun() const { return fed_; }  // a byte came
  // In seconds; none: no such header, or a date.
  [[nodiscard]] std::optional<std::int32_t> retry_after() const { return retry_after_; }
  // "completion_tokens" in the last part of a body without events, as OpenAI's API has it.
  [[nodiscard]] std::optional<std::int32_t> completion_tokens() const;

 private:
  enum class Stage : std::uint8_t {
    head,
    body_to_end,
    body_of_size,
    chunk_size,
    chunk,
    chunk_end,
    trailer
  };

  void read_head(std::string_view line);
  void begin_body();
  bool take_line(std::string_view& bytes);
  void on_line(Progress& progress);
  void body(std::string_view bytes, Progress& progress);
  void event_line(Progress& progress);

  State state_ = State::reading;
  Stage stage_ = Stage::head;
  std::int32_t status_ = 0;
  bool fed_ = false;
  bool excess_ = false;  // bytes after the end
  bool closes_ = false;
  std::optional<std::int32_t> retry_after_;
  bool chunked_ = false;
  bool has_length_ = false;
  bool event_stream_ = false;
  bool body_seen_ = false;
  std::uint64_t left_ = 0;  // of the chunk, or of the body
  std::string line_;        // of head, chunk size or trailer
  std::string event_line_;
  std::string tail_;  // of a body without events
};

}  // namespace neap::load
