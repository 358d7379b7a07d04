#include "trace/bytes.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/model/check.h"

namespace neap::trace {

namespace {

constexpr std::size_t buffer_bytes = 64 * 1024;

class FileBytes : public ByteStream {
 public:
  FileBytes(std::string path, std::FILE* file) : name_(std::move(path)), file_(file) {}

  Result<std::size_t> read(std::span<char> into) override {
    const std::size_t got = std::fread(into.data(), 1, into.size(), file_.get());
    if (got == 0 && std::ferror(file_.get()) != 0) {
      return fail(ErrorCode::unavailable, std::string("cannot be read: ") + std::strerror(errno),
                  name_);
    }
    return got;
  }
  const std::string& name() const override { return name_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string name_;
  std::unique_ptr<std::FILE, Close> file_;
};

class MemoryBytes : public ByteStream {
 public:
  MemoryBytes(std::string name, std::string text)
      : name_(std::move(name)), text_(std::move(text)) {}

  Result<std::size_t> read(std::span<char> into) override {
    const std::size_t got = std::min(into.size(), text_.size() - at_);
    std::memcpy(into.data(), text_.data() + at_, got);
    at_ += got;
    return got;
  }
  const std::string& name() const override { return name_; }

 private:
  std::string name_;
  std::string text_;
  std::size_t at_ = 0;
};

// Passes plain bytes through and decompresses gzip.
class MaybeGzip : public ByteStream {
 public:
  explicit MaybeGzip(Bytes raw) : raw_(std::move(raw)) {}
  ~MaybeGzip() override {
    if (form_ == Form::gzip) inflateEnd(&stream_);
  }
  MaybeGzip(const MaybeGzip&) = delete;
  MaybeGzip& operator=(const MaybeGzip&) = delete;

  const std::string& name() const override { return raw_->name(); }

  Result<std::size_t> read(std::span<char> into) override {
    if (form_ == Form::unknown) {
      if (auto known = recognise(); !known) return tl::unexpected(known.error());
    }
    return form_ == Form::gzip ? inflated(into) : plain(into);
  }

 private:
  enum class Form { unknown, plain, gzip };

  Result<void> refill() {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    const auto got = raw_->read(std::span<char>(buffer_).subspan(end_));
    if (!got) return tl::unexpected(got.error());
    end_ += *got;
    ended_ = *got == 0;
    return {};
  }

  Result<void> recognise() {
    while (end_ < 2 && !ended_) {
      if (auto filled = refill(); !filled) return filled;
    }
    if (!magic()) {
      form_ = Form::plain;
      return {};
    }
    constexpr int gzip_with_largest_window = 15 + 16;
    if (inflateInit2(&stream_, gzip_with_largest_window) != Z_OK) {
      return fail(ErrorCode::exhausted, "no memory to decompress it", name());
    }
    form_ = Form::gzip;
    return {};
  }

  [[nodiscard]] bool magic() const {
    return end_ - begin_ >= 2 && static_cast<unsigned char>(buffer_[begin_]) == 0x1f &&
           static_cast<unsigned char>(buffer_[begin_ + 1]) == 0x8b;
  }

  Result<std::size_t> plain(std::span<char> into) {
    if (begin_ == end_) return raw_->read(into);
    const std::size_t got = std::min(into.size(), end_ - begin_);
    std::memcpy(into.data(), buffer_.data() + begin_, got);
    begin_ += got;
    return got;
  }

  Result<std::size_t> inflated(std::span<char> into) {
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(into.size(), 1U << 30U));
    const uInt wanted = stream_.avail_out;
    while (!member_ended_ && stream_.avail_out == wanted) {
      if (begin_ == end_ && !ended_) {
        if (auto filled = refill(); !filled) return tl::unexpected(filled.error());
      }
      if (begin_ == end_)
        return fail(ErrorCode::invalid_argument, "the gzip data is cut off", name());
      if (auto moved = step(); !moved) return tl::unexpected(moved.error());
    }
    return wanted - stream_.avail_out;
  }

  Result<void> step() {
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data() + begin_);
    stream_.avail_in = static_cast<uInt>(end_ - begin_);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    begin_ = end_ - stream_.avail_in;
    if (code == Z_STREAM_END) return next_member();
    if (code != Z_OK && code != Z_BUF_ERROR) {
      return fail(ErrorCode::invalid_argument,
                  std::string("the gzip data is damaged: ") +
                      (stream_.msg != nullptr ? stream_.msg : "unknown form"),
                  name());
    }
    return {};
  }

  // gzip files may be joined; anything else after the end is damage.
  Result<void> next_member() {
    while (end_ - begin_ < 2 && !ended_) {
      if (auto filled = refill(); !filled) return filled;
    }
    if (begin_ == end_) {
      member_ended_ = true;
      return {};
    }
    if (!magic()) return fail(ErrorCode::invalid_argument, "bytes follow the gzip data", name());
    NEAP_CHECK(inflateReset(&stream_) == Z_OK);
    return {};
  }

  Bytes raw_;
  Form form_ = Form::unknown;
  z_stream stream_{};
  bool member_ended_ = false;
  bool ended_ = false;  // of the raw bytes
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::array<char, buffer_bytes> buffer_{};
};

}  // namespace

Result<Bytes> open_bytes(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    return fail(errno == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable,
                std::string("cannot be opened: ") + std::strerror(errno), path);
  }
  return std::make_unique<MaybeGzip>(std::make_unique<FileBytes>(path, file));
}

Bytes bytes_of(std::string name, std::string text) {
  return std::make_unique<MaybeGzip>(
      std::make_unique<MemoryBytes>(std::move(name), std::move(text)));
}

}  // namespace neap::trace
