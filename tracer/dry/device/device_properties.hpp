// Properties of the dry device, in the layouts of the CUDA runtimes that programs were built with.
#pragma once

#include "tracer/dry/preset.hpp"

namespace tidepool::dry {

/// The version of the CUDA runtime library that the program has loaded, as in 13020; 13000 if it has loaded none.
int runtime_version();

/// Fills a cudaDeviceProp as CUDA 12 (if `version` is below 13000) or CUDA 13 lays it out.
void write_properties(const DevicePreset& preset, int version, void* properties);

/// The value of a cudaDeviceAttr or CUdevice_attribute, which share their numbers; 0 for all attributes
/// that are not known here.
int device_attribute(const DevicePreset& preset, int attribute);

}  // namespace tidepool::dry
