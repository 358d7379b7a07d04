#include "api/http/listener.h"

#include <malloc.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api/error_body.h"
#include "api/http/connections.h"
#include "api/http/workers.h"

namespace neap::api::http {

namespace {

using Clock = std::chrono::steady_clock;
using ResponseHandle = std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)>;

class Server;

// One request from its first header to the last byte of its answer.
struct Exchange {
  explicit Exchange(Server& owner) : server(owner) {}

  Server& server;
  MHD_Connection* connection = nullptr;
  Request request;
  Response response;
  std::shared_ptr<Stream> stream;
  Clock::time_point began = Clock::now();
  std::size_t discarded = 0;
  bool answered = false;  // written by a worker before it resumes the connection
};

int descriptor_of(MHD_Connection* connection) {
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == nullptr ? -1 : info->connect_fd;
}

std::string header_of(MHD_Connection* connection, const char* name) {
  const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? "" : value;
}

// What decides where a body ends must be said once and in one way, or two readers of one
// connection may disagree about where the next request begins.
struct Framing {
  int lengths = 0;
  int encodings = 0;
  bool odd = false;

  [[nodiscard]] bool sound() const { return lengths + encodings <= 1 && !odd; }
};

MHD_Result count_framing(void* cls, MHD_ValueKind, const char* key, const char* value) {
  auto& framing = *static_cast<Framing*>(cls);
  // The library glues a header that goes on in the next line to its name, and keeps a blank before
  // the colon as part of it: whoever sits in front may have read the header as what it says.
  constexpr std::string_view length = "Content-Length";
  constexpr std::string_view encoding = "Transfer-Encoding";
  if (::strncasecmp(key, length.data(), length.size()) == 0) {
    ++framing.lengths;
    framing.odd |= key[length.size()] != '\0';
  }
  if (::strncasecmp(key, encoding.data(), encoding.size()) == 0) {
    ++framing.encodings;
    framing.odd |=
        key[encoding.size()] != '\0' || value == nullptr || ::strcasecmp(value, "chunked") != 0;
  }
  return MHD_YES;
}

MHD_Result keep_query(void* cls, MHD_ValueKind, const char* key, const char* value) {
  auto& query = *static_cast<std::map<std::string, std::string>*>(cls);
  query[key] = value == nullptr ? "" : value;
  return MHD_YES;
}

Response failure(ErrorCode code, std::string message) {
  return {http_status_of(code), error_body({code, std::move(message), ""}),
          code == ErrorCode::exhausted || code == ErrorCode::unavailable ? 1 : 0};
}

class Server final : public Listener {
 public:
  Server(Socket socket, ListenerSettings settings, Handler handler)
      : socket_(std::move(socket)),
        settings_(std::move(settings)),
        handler_(std::move(handler)),
        connections_((settings_.requests_max + settings_.streams_max) / 4, ::geteuid()),
        workers_(settings_.workers, settings_.requests_max) {}

  ~Server() override { stop(); }

  bool begin() {
    const auto connections = static_cast<unsigned>(settings_.requests_max + settings_.streams_max);
    daemon_ = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr,
        &Server::on_request, this, MHD_OPTION_LISTEN_SOCKET, socket_.get(),
        MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_TIMEOUT,
        static_cast<unsigned>(settings_.idle_timeout.count()), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        settings_.header_max, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED,
        &Server::on_completed, this, MHD_OPTION_NOTIFY_CONNECTION, &Server::on_connection, this,
        MHD_OPTION_END);
    if (daemon_ == nullptr) return false;
    heart_ = std::thread([this] { beat(); });
    return true;
  }

  [[nodiscard]] std::size_t streams() const override { return stream_count_.load(); }

  MHD_Result begin_exchange(Exchange& exchange, const char* method, const char* url);
  MHD_Result take_body(Exchange& exchange, const char* data, std::size_t* size);
  MHD_Result answer(Exchange& exchange);
  void finished(Exchange& exchange);

 private:
  static MHD_Result on_request(void* cls, MHD_Connection* connection, const char* url,
                               const char* method, const char* version, const char* data,
                               std::size_t* data_size, void** context);
  static void on_completed(void* cls, MHD_Connection* connection, void** context,
                           MHD_RequestTerminationCode code);
  static void on_connection(void* cls, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode code);

  [[nodiscard]] std::optional<Response> refusal(Exchange& exchange);
  MHD_Result hand_over(Exchange& exchange);
  void work(Exchange& exchange);
  void open_stream(Exchange& exchange);
  MHD_Result send(Exchange& exchange);
  void beat();
  void stop();

  Socket socket_;
  const ListenerSettings settings_;
  const Handler handler_;
  MHD_Daemon* daemon_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<std::shared_ptr<Stream>> streams_;
  std::size_t exchanges_ = 0;
  bool stopping_ = false;
  std::atomic<std::size_t> stream_count_ = 0;
  Connections connections_;

  Workers workers_;
  std::thread heart_;
};

MHD_Result Server::on_request(void* cls, MHD_Connection* connection, const char* url,
                              const char* method, const char*, const char* data,
                              std::size_t* data_size, void** context) {
  auto& server = *static_cast<Server*>(cls);
  if (*context == nullptr) {
    auto exchange = std::make_unique<Exchange>(server);
    exchange->connection = connection;
    *context = exchange.get();
    return server.begin_exchange(*exchange.release(), method, url);
  }
  auto& exchange = *static_cast<Exchange*>(*context);
  if (*data_size > 0) return server.take_body(exchange, data, data_size);
  return server.answer(exchange);
}

void Server::on_completed(void* cls, MHD_Connection*, void** context, MHD_RequestTerminationCode) {
  auto* exchange = static_cast<Exchange*>(*context);
  if (exchange == nullptr) return;
  *context = nullptr;
  static_cast<Server*>(cls)->finished(*exchange);
  delete exchange;
}

std::optional<ucred> peer_of(int fd) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return std::nullopt;
  return who;
}

void Server::on_connection(void* cls, MHD_Connection* connection, void**,
                           MHD_ConnectionNotificationCode code) {
  auto& server = *static_cast<Server*>(cls);
  const int fd = descriptor_of(connection);
  if (code == MHD_CONNECTION_NOTIFY_CLOSED) return server.connections_.closed(fd);
  // Over TCP there is one caller, the holder of the token.
  const auto who = server.settings_.token ? std::nullopt : peer_of(fd);
  const auto uid = who ? std::optional<std::uint32_t>(who->uid) : std::nullopt;
  if (!server.connections_.opened(fd, uid, Clock::now())) ::shutdown(fd, SHUT_RDWR);
}

// Reasons to refuse that need no body.
std::optional<Response> Server::refusal(Exchange& exchange) {
  MHD_Connection* connection = exchange.connection;
  Framing framing;
  MHD_get_connection_values(connection, MHD_HEADER_KIND, &count_framing, &framing);
  if (!framing.sound()) {
    return failure(ErrorCode::invalid_argument,
                   "the length of the body is given twice, or in a way that is not understood");
  }
  const std::string length = header_of(connection, "Content-Length");
  const auto too_long = [&] {
    return length.size() > 12 ||
           (!length.empty() && std::strtoull(length.c_str(), nullptr, 10) > settings_.body_max);
  };
  if (too_long()) {
    return failure(ErrorCode::too_large,
                   "the body is over " + std::to_string(settings_.body_max) + " bytes");
  }
  if (settings_.token) {
    if (!settings_.token->opens(header_of(connection, "Authorization"))) {
      return failure(ErrorCode::unauthenticated, "a valid bearer token is needed");
    }
    exchange.request.peer.by_token = true;
    return std::nullopt;
  }
  const auto who = peer_of(descriptor_of(connection));
  if (!who) return failure(ErrorCode::unauthenticated, "the kernel does not say who asks");
  exchange.request.peer = {false, who->uid, who->gid, who->pid};
  return std::nullopt;
}

MHD_Result Server::begin_exchange(Exchange& exchange, const char* method, const char* url) {
  bool stopping = false;
  {
    const std::lock_guard lock(mutex_);
    ++exchanges_;
    stopping = stopping_;
  }
  connections_.request_came(descriptor_of(exchange.connection));
  Request& request = exchange.request;
  request.method = method;
  request.path = url;
  MHD_get_connection_values(exchange.connection, MHD_GET_ARGUMENT_KIND, &keep_query,
                            &request.query);
  request.last_event_id = header_of(exchange.connection, "Last-Event-ID");
  std::optional<Response> refused = refusal(exchange);
  if (stopping) refused = failure(ErrorCode::unavailable, "the daemon is stopping");
  if (!refused) return MHD_YES;
  exchange.response = std::move(*refused);
  exchange.answered = true;
  return send(exchange);
}

MHD_Result Server::take_body(Exchange& exchange, const char* data, std::size_t* size) {
  const std::size_t count = std::exchange(*size, 0);
  if (Clock::now() - exchange.began > settings_.upload_timeout) return MHD_NO;
  if (exchange.discarded > 0 || exchange.request.body.size() + count > settings_.body_max) {
    // The answer must wait for the end of the body, but not for ever.
    exchange.discarded += count;
    return exchange.discarded > 4 * settings_.body_max ? MHD_NO : MHD_YES;
  }
  exchange.request.body.append(data, count);
  return MHD_YES;
}

MHD_Result Server::answer(Exchange& exchange) {
  if (exchange.answered) return send(exchange);
  if (exchange.discarded > 0) {
    exchange.response = failure(
        ErrorCode::too_large, "the body is over " + std::to_string(settings_.body_max) + " bytes");
    exchange.answered = true;
    return send(exchange);
  }
  return hand_over(exchange);
}

MHD_Result Server::hand_over(Exchange& exchange) {
  if (!workers_.reserve()) {
    exchange.response = failure(ErrorCode::exhausted, "too many requests at once; try again");
    exchange.answered = true;
    return send(exchange);
  }
  // Suspended before a worker can resume it.
  MHD_suspend_connection(exchange.connection);
  workers_.add([this, &exchange] { work(exchange); });
  return MHD_YES;
}

void Server::work(Exchange& exchange) {
  exchange.response = handler_(exchange.request);
  if (exchange.response.stream) open_stream(exchange);
  exchange.answered = true;
  MHD_resume_connection(exchange.connection);
}

void Server::open_stream(Exchange& exchange) {
  MHD_Connection* connection = exchange.connection;
  auto stream = std::make_shared<Stream>(
      settings_.stream_pending_max,
      Stream::Line{[connection] { MHD_suspend_connection(connection); },
                   [connection] { MHD_resume_connection(connection); },
                   [connection] { ::shutdown(descriptor_of(connection), SHUT_RDWR); }});
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || streams_.size() >= settings_.streams_max) {
      exchange.response = failure(ErrorCode::exhausted, "too many streams at once");
      return;
    }
    streams_.push_back(stream);
    stream_count_.store(streams_.size());
  }
  exchange.stream = stream;
  exchange.response.stream(stream);
}

// The library holds the stream until the response is over.
struct StreamHold {
  std::shared_ptr<Stream> stream;
};

ssize_t read_stream(void* cls, std::uint64_t, char* buffer, std::size_t max) {
  const Stream::Take take = static_cast<StreamHold*>(cls)->stream->take(buffer, max);
  switch (take.what) {
    case Stream::Taken::bytes:
      return static_cast<ssize_t>(take.count);
    case Stream::Taken::nothing:
      return 0;
    case Stream::Taken::end:
      return MHD_CONTENT_READER_END_OF_STREAM;
    case Stream::Taken::broken:
      return MHD_CONTENT_READER_END_WITH_ERROR;
  }
  return MHD_CONTENT_READER_END_WITH_ERROR;
}

void drop_stream(void* cls) { delete static_cast<StreamHold*>(cls); }

// A large answer was made of many small parts: they go back to the system with it.
void drop_body(void* cls) {
  const std::unique_ptr<std::string> body(static_cast<std::string*>(cls));
  constexpr std::size_t large = std::size_t{1} << 20;
  if (body->size() > large) ::malloc_trim(0);
}

MHD_Response* response_of(std::string&& text) {
  auto body = std::make_unique<std::string>(std::move(text));
  MHD_Response* response = MHD_create_response_from_buffer_with_free_callback_cls(
      body->size(), body->data(), &drop_body, body.get());
  if (response != nullptr) (void)body.release();
  return response;
}

MHD_Result Server::send(Exchange& exchange) {
  Response& answer = exchange.response;
  constexpr std::size_t stream_block = 4 * 1024;
  const ResponseHandle response(exchange.stream ? MHD_create_response_from_callback(
                                                      MHD_SIZE_UNKNOWN, stream_block, &read_stream,
                                                      new StreamHold{exchange.stream}, &drop_stream)
                                                : response_of(std::move(answer.body)),
                                &MHD_destroy_response);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response.get(), "Content-Type",
                          exchange.stream ? "text/event-stream" : "application/json");
  MHD_add_response_header(response.get(), "Cache-Control", "no-store");
  MHD_add_response_header(response.get(), "X-Content-Type-Options", "nosniff");
  if (answer.status == http_status_of(ErrorCode::unauthenticated)) {
    MHD_add_response_header(response.get(), "WWW-Authenticate", "Bearer");
  }
  if (answer.retry_after_s > 0) {
    MHD_add_response_header(response.get(), "Retry-After",
                            std::to_string(answer.retry_after_s).c_str());
  }
  return MHD_queue_response(exchange.connection, static_cast<unsigned>(answer.status),
                            response.get());
}

void Server::finished(Exchange& exchange) {
  if (exchange.stream) exchange.stream->disconnect();
  connections_.request_ended(descriptor_of(exchange.connection), Clock::now());
  const std::lock_guard lock(mutex_);
  if (exchange.stream) {
    streams_.remove(exchange.stream);
    stream_count_.store(streams_.size());
  }
  --exchanges_;
  changed_.notify_all();
}

// A comment in each stream keeps proxies from closing it and finds readers that have gone.
void Server::beat() {
  std::unique_lock lock(mutex_);
  auto next_beat = Clock::now() + settings_.heartbeat;
  const auto look_every =
      std::min<Clock::duration>(settings_.heartbeat, settings_.idle_timeout / 4);
  while (!changed_.wait_for(lock, look_every, [this] { return stopping_; })) {
    // Bytes that trickle in keep the library's own timer from ending a connection.
    connections_.shut_overdue(Clock::now() - settings_.idle_timeout - settings_.upload_timeout);
    if (Clock::now() < next_beat) continue;
    next_beat = Clock::now() + settings_.heartbeat;
    const std::vector<std::shared_ptr<Stream>> all(streams_.begin(), streams_.end());
    lock.unlock();
    for (const auto& stream : all) stream->send(": still here\n\n");
    lock.lock();
  }
}

void Server::stop() {
  if (daemon_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  heart_.join();
  MHD_quiesce_daemon(daemon_);
  workers_.stop();
  std::unique_lock lock(mutex_);
  const std::vector<std::shared_ptr<Stream>> all(streams_.begin(), streams_.end());
  lock.unlock();
  // A suspended connection would end the process in MHD_stop_daemon.
  for (const auto& stream : all) stream->finish();
  lock.lock();
  changed_.wait_for(lock, std::chrono::seconds(1), [this] { return exchanges_ == 0; });
  lock.unlock();
  MHD_stop_daemon(std::exchange(daemon_, nullptr));
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::start(Socket socket, ListenerSettings settings,
                                                  Handler handler) {
  auto server =
      std::make_unique<Server>(std::move(socket), std::move(settings), std::move(handler));
  if (!server->begin()) return fail(ErrorCode::unavailable, "the HTTP server does not start");
  return server;
}

}  // namespace neap::api::http
