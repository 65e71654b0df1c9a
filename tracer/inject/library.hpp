// The functions of libcupti and libcuda, found at run time: the recorder is linked to neither.
#pragma once

#include <cuda.h>
#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tidepool::inject {

/// The same as CUpti_SubscriberParams of CUDA 13, which older headers lack.
struct SubscriberParams {
  std::size_t struct_size = sizeof(SubscriberParams);
  const char* name = nullptr;
  char* other_name = nullptr;  ///< in: room for the name of the tool that subscribed before
  std::size_t other_size = 0;
};

/// Functions of libcupti. Optional functions may be nullptr; all others are set if load() succeeds.
struct CuptiLibrary {
  std::string path;           ///< of the library
  std::uint32_t version = 0;  ///< 0 = not known

  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiSubscribe) subscribe = nullptr;
  CUptiResult (*subscribe_v2)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*,
                              SubscriberParams*) = nullptr;  ///< optional
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiFinalize) finalize = nullptr;
  decltype(&cuptiEnableCallback) enable_callback = nullptr;
  decltype(&cuptiGetCallbackName) callback_name = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiGetStreamIdEx) stream_id = nullptr;
  decltype(&cuptiGetGraphNodeId) graph_node_id = nullptr;  ///< optional
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityFlushPeriod) flush_period = nullptr;  ///< optional
  decltype(&cuptiActivitySetAttribute) set_attribute = nullptr;
  decltype(&cuptiActivityGetAttribute) get_attribute = nullptr;
  CUptiResult (*all_sync_records)(std::uint8_t) = nullptr;   ///< optional
  CUptiResult (*allocation_source)(std::uint8_t) = nullptr;  ///< optional

  /// Loads the library: the named file or, if `named` is null or empty, the copy that the process has mapped already
  /// (two different copies in a process crash), else that of the toolkit in CUDA_HOME, else the file that the loader
  /// finds by name, else that of the toolkit in /usr/local/cuda.
  /// @return "", or the reason of a failure for a message
  std::string load(const char* named);
  /// Sets `version`; 0 if CUPTI does not report it.
  void ask_version();
};

struct DriverLibrary {
  decltype(&cuDriverGetVersion) version = nullptr;
  decltype(&cuFuncGetName) function_name = nullptr;            ///< optional
  decltype(&cuFuncGetParamInfo) function_parameter = nullptr;  ///< optional: drivers of CUDA 12.4 and later
  decltype(&cuKernelGetName) kernel_name = nullptr;            ///< optional
  decltype(&cuKernelGetParamInfo) kernel_parameter = nullptr;  ///< optional
  decltype(&cuPointerGetAttributes) pointer_attributes = nullptr;

  /// Finds the functions of the driver that is loading the recorder. @return "", or the reason of a failure
  std::string load();
};

}  // namespace tidepool::inject
