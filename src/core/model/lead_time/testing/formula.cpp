#include "core/model/lead_time/testing/formula.h"

#include <algorithm>
#include <map>

namespace neap::lead_time::testing {

namespace {

constexpr std::int64_t S = std::int64_t{1} << 20U;

std::int64_t down(std::int64_t a, std::int64_t b) {
  std::int64_t q = a / b;
  while (q * b > a) --q;
  return q;
}

std::int64_t cdiv(std::int64_t a, std::int64_t b) { return -down(-a, b); }

std::int64_t isqrt(std::int64_t value) {
  std::int64_t root = 0;
  for (std::int64_t bit = std::int64_t{1} << 31U; bit > 0; bit /= 2) {
    if ((root + bit) * (root + bit) <= value) root += bit;
  }
  return root;
}

class Formula {
 public:
  Formula(const GuardSpec& spec, Demand demand, Mistake mistake)
      : n(spec.slots_per_hour()),
        k(spec.lead_slots()),
        x(spec.violations_per_mille),
        P(spec.devices),
        mistake_(mistake),
        D(std::move(demand)) {}

  std::vector<std::int64_t> run() {
    for (std::int64_t s = 0; s < static_cast<std::int64_t>(D.size()); ++s) {
      const std::int64_t h = s / n;
      if (s % n == 0) {
        close(h - 1);
        learn(h);
      }
      slot(s, h);
    }
    return C;
  }

 private:
  void close(std::int64_t h) {
    if (h < 0) return;
    for (std::int64_t t = h * n; t < (h + 1) * n; ++t) {
      const auto at = static_cast<std::size_t>(t);
      if (!D[at] && mistake_ != Mistake::forgets_unknown) continue;
      const std::int64_t d = D[at].value_or(0);
      peak[h] = std::max(d, peak.contains(h) ? peak[h] : d);
      v[h] = v[h] || d > C[at];
      if (h < 2) continue;
      const std::int64_t one = cdiv((d - B[at]) * S, isqrt(B[at] * S));
      e[h] = std::max(one, e.contains(h) ? e[h] : one);
    }
  }

  void learn(std::int64_t h) {
    std::vector<std::int64_t> w;
    const std::int64_t newest = mistake_ == Mistake::learns_too_early ? h - 1 : h - 2;
    for (std::int64_t i = h - 337; i <= newest; ++i) {
      if (e.contains(i)) w.push_back(e[i]);
    }
    std::sort(w.begin(), w.end());
    const auto m = static_cast<std::int64_t>(w.size());
    ready[h] = m >= 24;
    if (m < 24) return;
    const auto at = [&](std::int64_t rank) { return w[static_cast<std::size_t>(rank - 1)]; };
    const std::int64_t r = cdiv((1000 - x) * (m + 1), 1000);
    const std::int64_t sp = std::max<std::int64_t>(1, at(cdiv(9 * m, 10)) - at(cdiv(m, 10)));
    if (ready[h - 2] && v.contains(h - 2)) {
      const std::int64_t step = sp * (1000 * (v[h - 2] ? 1 : 0) - x);
      th += mistake_ == Mistake::truncates ? step / 4000 : down(step, 4000);
      th = std::min(4 * sp, std::max(-sp, th));
    }
    q = at(std::min(r, m)) + th + (r > m ? sp : 0);
  }

  void slot(std::int64_t s, std::int64_t h) {
    if (s > 0) {
      const auto& before = D[static_cast<std::size_t>(s - 1)];
      if (before) last = *before;
      if (!before && mistake_ == Mistake::forgets_unknown) last = 0;
    }
    const std::int64_t ht = (s + k) / n;
    std::vector<std::int64_t> f;
    for (std::int64_t i = 1; i <= 7; ++i) {
      for (std::int64_t j = -1; j <= 1; ++j) {
        const std::int64_t hour = ht - 24 * i + j;
        if (hour < h && peak.contains(hour)) f.push_back(peak[hour]);
      }
    }
    std::sort(f.begin(), f.end());
    b.push_back(std::max<std::int64_t>(1, f.empty() ? last : cdiv(3 * last + f[f.size() / 2], 4)));
    const auto from = [&](std::int64_t back) { return std::max<std::int64_t>(0, s - back); };
    G.push_back(*std::max_element(b.begin() + from(n), b.end()));
    B.push_back(mistake_ == Mistake::raises_at_once
                    ? G.back()
                    : *std::min_element(G.begin() + from(k), G.end()));
    std::int64_t c = P;
    if (ready[h]) {
      c = std::min(P, std::max<std::int64_t>(1, B.back() + cdiv(q * isqrt(B.back() * S), S)));
      if (ready[h - 1] && c < C.back() && 8 * c > 7 * C.back()) c = C.back();
    }
    C.push_back(c);
  }

  std::int64_t n, k, x, P;
  Mistake mistake_;
  Demand D;
  std::vector<std::int64_t> b, G, B, C;
  std::map<std::int64_t, std::int64_t> peak, e;
  std::map<std::int64_t, bool> v, ready;
  std::int64_t last = 0, th = 0, q = 0;
};

}  // namespace

std::vector<std::int64_t> guards_by_formula(const GuardSpec& spec, const Demand& demand,
                                            Mistake mistake) {
  return Formula(spec, demand, mistake).run();
}

}  // namespace neap::lead_time::testing
