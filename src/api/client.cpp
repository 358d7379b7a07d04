#include "api/client.h"

#include <curl/curl.h>

#include <cerrno>

#include <nlohmann/json.hpp>
#include <utility>

namespace neap::api {

namespace {

using Json = nlohmann::json;

constexpr std::size_t answer_max = std::size_t{64} << 20;
constexpr long silence_max_s = 60;

struct ListFree {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// "file:line: field", of what is there.
std::string place_of(const Json& json) {
  std::string place = text_at(json, "file");
  const auto line = json.find("line");
  if (!place.empty() && line != json.end() && line->is_number_integer()) {
    place += ":" + std::to_string(line->get<std::int64_t>());
  }
  const std::string field = text_at(json, "field");
  if (!field.empty()) place += (place.empty() ? "" : ": ") + field;
  return place;
}

ErrorCode code_of(std::string_view name, long status) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    if (name_of(code) == name) return code;
  }
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    if (http_status_of(code) == status) return code;
  }
  return status >= 400 && status < 500 ? ErrorCode::invalid_argument : ErrorCode::internal;
}

// What a transfer writes into.
struct Incoming {
  CURL* handle = nullptr;
  std::string body;
  const std::function<Next(const StreamEvent&)>* on_event = nullptr;
  EventReader reader;
  bool stopped = false;
};

std::size_t take_bytes(char* bytes, std::size_t, std::size_t count, void* cls) {
  auto& incoming = *static_cast<Incoming*>(cls);
  const std::string_view text(bytes, count);
  long status = 0;
  curl_easy_getinfo(incoming.handle, CURLINFO_RESPONSE_CODE, &status);
  if (incoming.on_event == nullptr || status != 200) {
    if (incoming.body.size() + count > answer_max) return 0;
    incoming.body.append(text);
    return count;
  }
  if (incoming.reader.feed(text, *incoming.on_event) == Next::stop) incoming.stopped = true;
  return incoming.stopped || incoming.reader.overlong() ? 0 : count;
}

void start_library() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)started;
}

}  // namespace

Error error_of(long status, const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  const auto error = json.is_object() ? json.find("error") : json.end();
  if (!json.is_object() || error == json.end() || !error->is_object()) {
    return {code_of("", status), "the daemon answered with status " + std::to_string(status), ""};
  }
  Error out{code_of(text_at(*error, "code"), status), text_at(*error, "message"), place_of(*error)};
  const auto problems = json.find("problems");
  if (problems == json.end() || !problems->is_array()) return out;
  for (std::size_t i = 1; i < problems->size(); ++i) {
    out.message += "\n" + place_of((*problems)[i]) + ": " + text_at((*problems)[i], "message");
  }
  return out;
}

Next EventReader::feed(std::string_view bytes,
                       const std::function<Next(const StreamEvent&)>& on_event) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    line_.append(bytes.substr(0, end));
    if (end == std::string_view::npos || overlong()) return Next::more;
    bytes.remove_prefix(end + 1);
    if (take_line(on_event) == Next::stop) return Next::stop;
    line_.clear();
  }
  return Next::more;
}

Next EventReader::take_line(const std::function<Next(const StreamEvent&)>& on_event) {
  if (line_.ends_with('\r')) line_.pop_back();
  if (line_.empty()) {
    if (!std::exchange(started_, false)) return Next::more;
    return on_event(std::exchange(event_, {}));
  }
  if (line_.front() == ':') return Next::more;
  const std::size_t colon = line_.find(':');
  const std::string_view line = line_;
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "id") event_.id = value;
  if (field == "event") event_.name = value;
  if (field == "data") {
    if (!event_.data.empty()) event_.data += '\n';
    event_.data += value;
    started_ = true;
  }
  return Next::more;
}

struct Client::Connection {
  struct Close {
    void operator()(CURL* made) const { curl_easy_cleanup(made); }
  };

  Endpoint endpoint;
  std::unique_ptr<CURL, Close> handle{curl_easy_init()};
  long timeout_ms = 30'000;

  // Fails with what the daemon said, or with what kept it from being asked.
  Result<std::string> perform(const char* method, std::string_view path,
                              const std::string_view* json, Incoming& incoming);
};

Result<std::string> Client::Connection::perform(const char* method, std::string_view path,
                                                const std::string_view* json, Incoming& incoming) {
  CURL* curl = handle.get();
  if (curl == nullptr) return fail(ErrorCode::internal, "libcurl does not start");
  curl_easy_reset(curl);
  const std::string url =
      (endpoint.socket.empty() ? endpoint.url : "http://neap") + std::string(path);
  std::unique_ptr<curl_slist, ListFree> headers;
  const auto add_header = [&](const std::string& text) {
    headers.reset(curl_slist_append(headers.release(), text.c_str()));
  };
  if (!endpoint.token.empty()) add_header("Authorization: Bearer " + endpoint.token);
  if (json != nullptr) {
    add_header("Content-Type: application/json");
    add_header("Expect:");
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, json->data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(json->size()));
  }
  char problem[CURL_ERROR_SIZE] = "";
  incoming.handle = curl;
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, 5'000L);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &take_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &incoming);
  if (!endpoint.socket.empty()) {
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, endpoint.socket.c_str());
  }
  if (incoming.on_event == nullptr) {
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
  } else {
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, silence_max_s);
  }
  const CURLcode done = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  if (incoming.stopped) return std::string();
  long number = 0;
  curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &number);
  if (done == CURLE_COULDNT_CONNECT && (number == EACCES || number == EPERM)) {
    return fail(ErrorCode::permission_denied,
                "this user may not use the socket; its owner can open it to a group with api.group",
                endpoint.shown());
  }
  if (done == CURLE_COULDNT_CONNECT || done == CURLE_COULDNT_RESOLVE_HOST) {
    return fail(ErrorCode::unavailable,
                "no daemon answers; start one with `neap serve`, or name its socket with --socket "
                "or NEAP_SOCKET_API",
                endpoint.shown());
  }
  if (done != CURLE_OK) {
    return fail(ErrorCode::unavailable,
                "the connection failed: " +
                    std::string(problem[0] != '\0' ? problem : curl_easy_strerror(done)) +
                    (std::string_view(method) == "GET"
                         ? ""
                         : "; whether it was carried out is not known: look before it is repeated"),
                endpoint.shown());
  }
  if (status >= 400) return tl::unexpected(error_of(status, incoming.body));
  return std::move(incoming.body);
}

Client::Client(Endpoint endpoint) {
  start_library();
  connection_ = std::make_unique<Connection>();
  connection_->endpoint = std::move(endpoint);
}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

void Client::set_timeout(std::chrono::milliseconds timeout) {
  connection_->timeout_ms = static_cast<long>(timeout.count());
}

Result<std::string> Client::get(std::string_view path) {
  Incoming incoming;
  return connection_->perform("GET", path, nullptr, incoming);
}

Result<std::string> Client::post(std::string_view path, std::string_view json) {
  Incoming incoming;
  return connection_->perform("POST", path, &json, incoming);
}

Result<std::string> Client::remove(std::string_view path) {
  Incoming incoming;
  return connection_->perform("DELETE", path, nullptr, incoming);
}

Result<void> Client::follow(std::string_view path,
                            const std::function<Next(const StreamEvent&)>& on_event) {
  Incoming incoming;
  incoming.on_event = &on_event;
  const Result<std::string> done = connection_->perform("GET", path, nullptr, incoming);
  if (!done) return tl::unexpected(done.error());
  return {};
}

std::string Client::escaped(std::string_view text) {
  constexpr std::string_view plain = "-._~";
  constexpr char hex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || plain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += hex[byte >> 4];
      out += hex[byte & 15];
    }
  }
  return out;
}

}  // namespace neap::api
