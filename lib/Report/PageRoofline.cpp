//===- PageRoofline.cpp - operations under the roof of a machine -*- C++
//-*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Html.h"
#include "Numbers.h"

#include <cmath>

using namespace hybrid;

namespace {

/// Both axes are logarithms: operations per byte, and operations per second.
struct Roof {
  static constexpr double width = 640, height = 270, left = 66, right = 632,
                          top = 14, bottom = 232;
  /// Powers of ten at the ends of the axes.
  double fromX = -2, toX = 4, fromY, toY;
  const Device &device;

  explicit Roof(const Device &device) : device(device) {
    toY = std::ceil(std::log10(device.flops) + 0.1);
    fromY = std::floor(std::log10(device.bandwidth) + fromX);
  }
  double x(double intensity) const {
    double clamped = std::clamp(std::log10(intensity), fromX, toX);
    return left + (right - left) * (clamped - fromX) / (toX - fromX);
  }
  double y(double rate) const {
    double clamped = std::clamp(std::log10(rate), fromY, toY);
    return bottom - (bottom - top) * (clamped - fromY) / (toY - fromY);
  }
  double getRate(double intensity) const {
    return std::min(device.flops, intensity * device.bandwidth);
  }
  double getRidge() const { return device.flops / device.bandwidth; }
};

} // namespace

/// 0.01, 1, 100, 10 k, 1 T
static std::string formatPower(double exponent) {
  double value = std::pow(10.0, exponent);
  if (value < 1)
    return at(value);
  std::string text = formatShort(value);
  return text.erase(text.find('.'), 2);
}

static void writeAxes(llvm::raw_ostream &os, const Roof &roof) {
  for (double power = roof.fromX; power <= roof.toX; ++power) {
    double x = roof.x(std::pow(10.0, power));
    os << "<path class=\"grid\" d=\"M" << at(x) << ' ' << at(Roof::top) << 'V'
       << at(Roof::bottom) << "\"/>\n";
    writeText(os, x, Roof::bottom + 14,
              power < roof.toX ? "note middle" : "note end",
              formatPower(power));
  }
  for (double power = roof.fromY; power <= roof.toY; ++power) {
    double y = roof.y(std::pow(10.0, power));
    os << "<path class=\"grid\" d=\"M" << at(Roof::left) << ' ' << at(y) << 'H'
       << at(Roof::right) << "\"/>\n";
    writeText(os, Roof::left - 6, y + 3.5, "note end",
              formatPower(power) + "/s");
  }
  writeText(os, Roof::right, Roof::height - 6, "note end",
            "operations per byte");
}

static void writeRoof(llvm::raw_ostream &os, const Roof &roof) {
  double slope = std::pow(10.0, roof.fromX);
  os << "<path class=\"roof\" d=\"M" << at(roof.x(slope)) << ' '
     << at(roof.y(roof.getRate(slope))) << 'L' << at(roof.x(roof.getRidge()))
     << ' ' << at(roof.y(roof.device.flops)) << 'H' << at(Roof::right)
     << "\"/>\n";
  writeText(os, Roof::right, roof.y(roof.device.flops) - 6, "mark end",
            formatShort(roof.device.flops) + " operations/s");
  double low = std::pow(10.0, roof.fromX + 0.5);
  writeText(os, roof.x(low) + 12, roof.y(roof.getRate(low)) + 12, "mark",
            formatShort(roof.device.bandwidth) + "B/s");
}

static std::string getName(const OperationReport &operation) {
  return operation.layer < 0 ? operation.place
                             : "layers." + std::to_string(operation.layer) +
                                   "." + operation.place;
}

static void writeDots(llvm::raw_ostream &os, const Roof &roof,
                      const CallReport &call, double total) {
  for (const OperationReport &operation : call.operations) {
    const Work &work = operation.work;
    if (work.flops <= 0 || work.bytes <= 0)
      continue;
    double intensity = work.flops / work.bytes;
    double floor = getFloor(work, roof.device);
    os << "<circle class=\"o" << indexOfOperationKind(operation.kind)
       << "\" cx=\"" << at(roof.x(intensity)) << "\" cy=\""
       << at(roof.y(roof.getRate(intensity))) << "\" r=\""
       << at(3 + 16 * std::sqrt(floor / total)) << "\"><title>"
       << escape(getName(operation)) << "\n"
       << formatShort(work.flops) << " operations, " << formatShort(work.bytes)
       << "B, " << at(intensity) << " per byte\nat least "
       << escape(formatSeconds(floor)) << ", bound by "
       << (intensity < roof.getRidge() ? "memory" : "arithmetic") << "\n"
       << escape(operation.kernels) << "</title></circle>\n";
  }
}

/// Which kinds the least time goes to, as one bar, and the legend of the dots.
static void writeShares(llvm::raw_ostream &os, const CallReport &call,
                        const Device &device, double total) {
  std::vector<double> sums(getOperationKinds().size(), 0.0);
  for (const OperationReport &operation : call.operations)
    sums[indexOfOperationKind(operation.kind)] +=
        getFloor(operation.work, device);
  os << "<svg viewBox=\"0 0 640 14\" aria-hidden=\"true\">\n";
  double x = Roof::left;
  for (auto [index, sum] : llvm::enumerate(sums)) {
    double width = (Roof::right - Roof::left) * sum / total;
    os << "<rect class=\"o" << index << " solid\" x=\"" << at(x)
       << "\" y=\"0\" width=\"" << at(width) << "\" height=\"12\"/>\n";
    x += width;
  }
  os << "</svg>\n<ul class=\"legend tight\">\n";
  for (auto [index, sum] : llvm::enumerate(sums))
    if (sum > 0)
      os << "<li><span class=\"chip o" << index << " solid\"></span><span>"
         << getOperationKinds()[index] << " <b>"
         << at(std::round(1000.0 * sum / total) / 10.0)
         << " %</b></span></li>\n";
  os << "</ul>\n";
}

void hybrid::writeRoofline(llvm::raw_ostream &os, const CallReport &call,
                           const Device &device) {
  double total = 0;
  bool hasDots = false;
  for (const OperationReport &operation : call.operations) {
    total += getFloor(operation.work, device);
    hasDots |= operation.work.flops > 0;
  }
  if (!hasDots)
    return;
  Roof roof(device);
  os << "<figure><figcaption>" << call.title << ", at least <b>"
     << escape(formatSeconds(total))
     << "</b></figcaption>\n<svg class=\"dots\" viewBox=\"0 0 "
     << at(Roof::width) << ' ' << at(Roof::height)
     << "\" role=\"img\" aria-label=\"Roofline of " << call.title << "\">\n";
  writeAxes(os, roof);
  writeRoof(os, roof);
  writeDots(os, roof, call, total);
  os << "</svg>\n";
  writeShares(os, call, device, total);
  os << "</figure>\n";
}
