// The parts of the page that do not depend on what is reported: files of simulator/report/assets, built in.
#pragma once

#include <string_view>

namespace tidepool {

/// @param name  of a file there, as in "report.css"; it exists
std::string_view report_asset(std::string_view name);
/// All scripts in the order of their names, which is the order they are executed in.
std::string_view report_scripts();

}  // namespace tidepool
