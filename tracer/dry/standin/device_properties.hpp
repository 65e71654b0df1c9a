// Properties of the stand-in device, in the layouts of the CUDA runtimes that programs were built with.
#pragma once

#include "tracer/dry/preset.hpp"

namespace tidepool::dry {

/// The version of the CUDA runtime library that the program is linked with, as in 13020; 13000 if none is loaded.
int runtime_version();

/// Fills a cudaDeviceProp of CUDA 12 or 13.
void write_properties(const DevicePreset& preset, int version, void* properties);

/// The value of a cudaDeviceAttr or CUdevice_attribute, which share their numbers; 0 for features that a device need
/// not have.
int device_attribute(const DevicePreset& preset, int attribute);

}  // namespace tidepool::dry
