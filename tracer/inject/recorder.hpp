// The recorder of this process: its state, and the functions that CUPTI calls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracer/cupti/buffer_pool.hpp"
#include "tracer/cupti/driver_calls.hpp"
#include "tracer/cupti/iteration_window.hpp"
#include "tracer/cupti/options.hpp"
#include "tracer/inject/callbacks.hpp"
#include "tracer/inject/known_memory.hpp"
#include "tracer/inject/layouts.hpp"
#include "tracer/inject/library.hpp"
#include "tracer/inject/output.hpp"

namespace tidepool::inject {

/// One recorder for the process, never destroyed: threads of the job may call it until the process ends.
///
/// CUPTI is started in cuInit, and later by a control thread. Only the control thread stops it, so that a CUPTI that
/// hangs does not block the job. When the recording has ended, and if options.detach is set, cuptiFinalize is called at
/// the end of a call of the job while no other thread is in one, because an attached profiler would continue to slow
/// the job down.
class Recorder {
 public:
  static Recorder& instance();

  /// Called once, by InitializeInjection. A failure is printed on stderr, and the job runs unrecorded.
  void begin();
  /// Called at the end of the process: stops CUPTI, flushes and closes the file. Waits at most options.flush_limit_ms
  /// for CUPTI, and then for the file as long as Output::close() does.
  void end();
  /// Called in the child of a fork, in which neither CUPTI nor the control thread runs.
  void forked();
  /// Called when an iteration begins; later calls have correlation ids after `last`.
  void iteration(std::string_view name, std::uint32_t last);
  /// Called by PyTorch's hook, which records too and writes the marks of iterations itself. The hook's next iteration
  /// begins or, if `last`, its recording has ended.
  void hook_iteration(bool last);
  /// A range of NVTX; `action` as in raw::Range.
  void range(raw::RangeAction action, std::string_view name, std::string_view domain, std::uint64_t id);

 private:
  Recorder();
  ~Recorder() = delete;

  // session.cpp: starting and stopping CUPTI.
  bool load();
  /// Looks up the numbers of calls by their names.
  void learn_calls();
  bool subscribe();
  bool start();
  void stop();
  void detach();
  /// @return  whether a callback has called cuptiFinalize
  bool finalize();
  void set_callbacks(bool on);
  void set_attributes();
  void read_clocks();
  void count_dropped();

  // control.cpp: the control thread.
  void run_control();
  static void on_signal(int signal);
  void listen();

  // callbacks.cpp.
  static void CUPTIAPI on_callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);
  void entered(Thread& thread, std::uint32_t correlation);
  /// Called when a thread leaves a call. Detaches CUPTI if that is wanted and no other thread is in a call. @return
  /// whether this call has detached it
  bool left(Thread& thread);
  void on_runtime(const CUpti_CallbackData& data);
  void on_driver(cupti::DriverCall call, const CUpti_CallbackData& data);
  void on_driver_exit(cupti::DriverCall call, const CUpti_CallbackData& data, std::int64_t begin);
  void on_resource(CUpti_CallbackId id, const CUpti_ResourceData& data);
  void on_memory(cupti::DriverCall call, const CUpti_CallbackData& data);
  void on_vmm(cupti::DriverCall call, const CUpti_CallbackData& data);
  void on_tensor_map(cupti::DriverCall call, const void* parameters);
  void on_event(const CUpti_CallbackData& data, std::int64_t begin);

  // launches.cpp: the memory that launches use.
  struct Uses {
    std::vector<raw::BufferUse> uses;
    std::uint32_t unknown_pointers = 0, flags = 0;
    std::uint64_t function = 0;
  };
  void on_launch(cupti::DriverCall call, const CUpti_CallbackData& data, std::int64_t begin);
  void scan_kernel(CUfunction function, std::uint32_t blocks, void* const* values, void* const* extra, Uses& found);
  bool known(std::uint64_t address);
  void collect(cupti::DriverCall call, const void* parameters, Uses& found);

  // graphs.cpp: the memory that nodes of graphs use at each launch.
  void on_graph_node(CUpti_CallbackId id, const CUpti_GraphData& data);
  void on_graph_call(cupti::DriverCall call, const void* parameters);
  void collect_node(const CUgraphNodeParams& node, Uses& found);
  void scan_kernel_node(const CUDA_KERNEL_NODE_PARAMS& node, Uses& found);
  void set_node(CUgraphNode node, Uses found);
  /// The same for the clones of a node in an executable graph.
  void set_clones(CUgraphExec exec, CUgraphNode original, const Uses& found);
  void append_node(CUgraphNode node, const Uses& found);

  // activities.cpp.
  static void CUPTIAPI on_buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
  static void CUPTIAPI on_buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                                           std::size_t size, std::size_t used);
  void on_activity(const CUpti_Activity& record);

  std::int64_t now() const;
  /// Whether calls are recorded now.
  bool recording() const { return started_ && !window_->ended(); }

  cupti::RecorderOptions options_;
  CuptiLibrary cupti_;
  DriverLibrary driver_;
  Output output_;
  std::vector<cupti::DriverCall> calls_;  ///< by callback id
  std::vector<CUpti_CallbackId> outer_calls_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::unique_ptr<cupti::BufferPool> buffers_;
  std::unique_ptr<cupti::IterationWindow> window_;
  KnownMemory memory_;
  Layouts layouts_;

  std::mutex graphs_mutex_;
  struct Node {
    Uses uses;
    std::vector<std::pair<CUgraphExec, CUgraphNode>> clones;  ///< in executable graphs of its graph
    CUgraphNode original = nullptr;  ///< the node that this node is a clone of; none: it is no clone
  };
  std::unordered_map<CUgraphNode, Node> nodes_;

  std::atomic<std::uint32_t> last_correlation_{0};
  std::atomic<std::uint32_t> session_{0};        ///< number of starts
  std::atomic<std::int32_t> threads_inside_{0};  ///< threads in calls with callbacks, since the last start
  std::atomic<bool> started_{false}, dead_{false}, detach_wanted_{false};

  std::thread control_;
  void wake();
  int wake_ = -1;  ///< eventfd that wakes the control thread
  std::atomic<std::uint32_t> signals_{0};
  std::atomic<bool> ending_{false};
  std::mutex control_mutex_;
  std::condition_variable control_changed_;
  bool control_done_ = false, detached_ = false;
};

}  // namespace tidepool::inject
