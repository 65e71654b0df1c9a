// Parts of the page that are the same in every report: the files of simulator/studies/report/assets, compiled in.
#pragma once

#include <string_view>

namespace tidepool {

/// @param name  name of a file in that folder, such as "report.css"; the file must exist
std::string_view report_asset(std::string_view name);
/// All scripts, in the order of their names. The page executes them in this order.
std::string_view report_scripts();

}  // namespace tidepool
