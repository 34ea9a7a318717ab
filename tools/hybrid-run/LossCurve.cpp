//===- LossCurve.cpp -----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LossCurve.h"

#include "io/AtomicFile.h"
#include "io/Json.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>

namespace hyb::run {

using namespace hyb::rt;

namespace {

struct Point {
  double bytes, bits;
};

struct Curves {
  std::vector<Point> training, quick, validation;
};

Result<Curves> readLog(const std::string &path) {
  HYB_ASSIGN(MappedFile file, MappedFile::open(path));
  Curves curves;
  const char *begin = reinterpret_cast<const char *>(file.bytes().data);
  const char *end = begin + file.bytes().size;
  while (begin < end) {
    const char *newline = std::find(begin, end, '\n');
    Json line = Json::parse(begin, newline, nullptr, false);
    begin = newline == end ? end : newline + 1;
    if (!line.is_object() || !line.contains("bytes") ||
        !line["bytes"].is_number())
      continue;
    double bytes = line["bytes"].get<double>();
    auto append = [&](const char *key, std::vector<Point> &points) {
      if (line.contains(key) && line[key].is_number())
        points.push_back({bytes, line[key].get<double>()});
    };
    append("bits_per_byte", curves.training);
    bool isQuick = line.contains("quick") && line["quick"] == true;
    append("valid_bits_per_byte", isQuick ? curves.quick : curves.validation);
  }
  return curves;
}

/// Means of neighbouring steps: a point per step is noise.
std::vector<Point> smooth(const std::vector<Point> &points, size_t count) {
  size_t width = std::max<size_t>(1, points.size() / count);
  std::vector<Point> result;
  for (size_t begin = 0; begin < points.size(); begin += width) {
    size_t end = std::min(begin + width, points.size());
    Point mean = {0, 0};
    for (size_t i = begin; i < end; ++i) {
      mean.bytes += points[i].bytes / static_cast<double>(end - begin);
      mean.bits += points[i].bits / static_cast<double>(end - begin);
    }
    result.push_back(mean);
  }
  return result;
}

class Picture {
public:
  Picture(double mostBytes, double low, double high)
      : mostBytes(mostBytes), low(low), high(high) {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
        kWidth, kHeight, kWidth, kHeight);
    for (double bits = std::ceil(low * 4) / 4; bits <= high; bits += 0.25)
      add("<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" "
          "stroke=\"#ddd\"/>\n<text x=\"%d\" y=\"%.1f\" "
          "text-anchor=\"end\">%.2f</text>\n",
          kLeft, kWidth - kRight, y(bits), y(bits), kLeft - 6, y(bits) + 4,
          bits);
    for (int i = 0; i <= 4; ++i)
      add("<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.1f</text>\n",
          x(mostBytes * i / 4), kHeight - kBottom + 18, mostBytes * i / 4e6);
    add("<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">million bytes seen"
        "</text>\n<text x=\"%d\" y=\"16\">bits per byte: line training, "
        "rings validation on a part, dots on all of it</text>\n",
        (kLeft + kWidth) / 2, kHeight - 8, kLeft);
  }

  void line(const std::vector<Point> &points) {
    add("<polyline fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"1.5\" "
        "points=\"");
    for (const Point &point : points)
      add("%.1f,%.1f ", x(point.bytes), y(point.bits));
    add("\"/>\n");
  }
  void dots(const std::vector<Point> &points, const char *fill) {
    for (const Point &point : points)
      add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\" "
          "stroke=\"#c0392b\"/>\n",
          x(point.bytes), y(point.bits), fill);
  }
  std::string take() {
    add("</svg>\n");
    return std::move(text);
  }

private:
  static constexpr int kWidth = 720, kHeight = 400, kLeft = 56, kRight = 20,
                       kTop = 28, kBottom = 48;

  [[gnu::format(printf, 2, 3)]] void add(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char buffer[512];
    std::vsnprintf(buffer, sizeof(buffer), format, arguments);
    va_end(arguments);
    text += buffer;
  }
  double x(double bytes) const {
    return kLeft + (kWidth - kLeft - kRight) * bytes / mostBytes;
  }
  double y(double bits) const {
    return kTop + (kHeight - kTop - kBottom) * (high - std::min(bits, high)) /
                      (high - low);
  }

  double mostBytes, low, high;
  std::string text;
};

} // namespace

Status drawLossCurve(const std::string &log, const std::string &picture) {
  HYB_ASSIGN(Curves curves, readLog(log));
  if (curves.training.empty())
    return failure(HYB_INVALID_ARGUMENT,
                   "%s has no training steps to draw; train first",
                   log.c_str());
  std::vector<Point> training = smooth(curves.training, 300);
  double low = training.front().bits, high = low, most = 0;
  for (const std::vector<Point> *points :
       {&training, &curves.quick, &curves.validation})
    for (const Point &point : *points) {
      low = std::min(low, point.bits);
      high = std::max(high, point.bits);
      most = std::max(most, point.bytes);
    }
  // The first steps would flatten the rest.
  high = std::min(high, low + 3) + 0.05;
  Picture result(most, low - 0.05, high);
  result.line(training);
  result.dots(curves.quick, "none");
  result.dots(curves.validation, "#c0392b");
  return writeFileAtomically(picture, result.take());
}

} // namespace hyb::run
