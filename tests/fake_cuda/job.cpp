// A job that plays a script of driver calls, one per line:
//
//   function add _Z3addPKfPfi 8@0 8@8 4@16     a kernel and its parameters, size@offset
//   alloc a 4096 | free a | alloc-async a 4096 s1 | free-async a s1 | map v 4096 | unmap v 4096
//   hidden a 4096                              memory without callbacks and records
//   stream s1 | event e | record e s1 | wait e s1 | destroy-stream s1 | destroy-event e | unload add | synchronize
//   launch add a b+512 7 [on s1]               values: memory with an offset, numbers, {a,0,b} words by value, @t a map
//   launch-packed add ... | launch-ex add ... | runtime-launch add ... | nested-launch add ...
//   delay 50                                   the thread's next driver call takes 50 ms longer
//   tensor-map t a
//   copy to from 64 | copy-in to 64 | copy-out from 64      in bytes
//   set to 16                                  16 words of 4 bytes
//   capture s1 ... end-capture g | instantiate x g | graph x | destroy-exec x     s1: the first stream by name
//   add-node n g add a b 7 | set-node x n add a b 7
//   set-any x n add a b 7 | set-any - n add a b 7      by the calls for all types of nodes; -: n itself, not its clone
//   push NAME | pop | mark NAME                NVTX
//   hook-iteration | hook-end                  calls of PyTorch's hook to the recorder
//   attribute 5 8                              sets attribute 5 of CUPTI's activities, with a value of 8 bytes
//   refused 400 record e s1                    the driver (or CUPTI) must refuse the line `record e s1` with status 400
//   no-context | context                       the thread gives up its context, and gets it back
//   repeat 3 ... again | threads 4 ... join    a block three times, or in four threads at once; not nested
//   fork [SCRIPT] | exec SCRIPT | await FILE | raise 10 | _exit 3 | exit 3 | hang
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fake_cuda/fake.hpp"

namespace {

using Words = std::vector<std::string>;

struct Kernel {
  CUfunction handle = nullptr;
  std::vector<std::size_t> offsets, sizes;
};

std::string program;
std::map<std::string, CUdeviceptr> memory;
std::map<std::string, std::pair<CUdeviceptr, CUmemGenericAllocationHandle>> mapped;
std::map<std::string, Kernel> kernels;
std::map<std::string, CUstream> streams;
std::map<std::string, CUevent> events;
std::map<std::string, CUgraph> graphs;
std::map<std::string, CUgraphExec> execs;
std::map<std::string, CUgraphNode> nodes;
std::map<std::string, CUtensorMap> maps;

thread_local int expected = CUDA_SUCCESS;

[[noreturn]] void fail(const std::string& what) {
  std::cerr << "job: " << what << "\n";
  std::_Exit(99);
}

void require(CUresult result, const std::string& line) {
  if (result != std::exchange(expected, CUDA_SUCCESS)) fail(line + ": error " + std::to_string(result));
}

std::uint64_t word_of(const std::string& text) {
  const std::string name = text.substr(0, text.find('+'));
  const auto found = memory.find(name);
  const std::uint64_t offset = text.find('+') == std::string::npos ? 0 : std::stoull(text.substr(text.find('+') + 1));
  return found == memory.end() ? std::stoull(text, nullptr, 0) : found->second + offset;
}

std::vector<unsigned char> bytes_of(const std::string& text, std::size_t size) {
  std::vector<unsigned char> bytes(size);
  if (text[0] == '@') {
    std::memcpy(bytes.data(), &maps.at(text.substr(1)), std::min(size, sizeof(CUtensorMap)));
  } else if (text[0] == '{') {
    std::istringstream words{text.substr(1, text.size() - 2)};
    std::size_t at = 0;
    for (std::string one; std::getline(words, one, ',') && at + 8 <= size; at += 8) {
      const std::uint64_t word = word_of(one);
      std::memcpy(bytes.data() + at, &word, 8);
    }
  } else {
    const std::uint64_t word = word_of(text);
    std::memcpy(bytes.data(), &word, std::min<std::size_t>(size, 8));
  }
  return bytes;
}

/// Takes the stream after "on" from the words; the default stream without "on".
CUstream take_stream(Words& words) {
  if (words.size() < 3 || words[words.size() - 2] != "on") return nullptr;
  CUstream stream = streams.at(words.back());
  words.resize(words.size() - 2);
  return stream;
}

/// The parameters of a kernel from words[first] on.
struct Arguments {
  std::vector<std::vector<unsigned char>> bytes;
  std::vector<void*> values;
  Arguments(const Kernel& kernel, const Words& words, std::size_t first) {
    if (words.size() - first != kernel.sizes.size()) fail("launch of " + words[first - 1] + ": wrong number of values");
    for (std::size_t i = 0; i < kernel.sizes.size(); ++i) bytes.push_back(bytes_of(words[first + i], kernel.sizes[i]));
    for (auto& one : bytes) values.push_back(one.data());
  }
};

CUresult launch(Words words) {
  CUstream stream = take_stream(words);
  const Kernel& kernel = kernels.at(words.at(1));
  Arguments arguments{kernel, words, 2};
  if (words[0] == "launch-packed") {
    std::vector<unsigned char> packed;
    for (std::size_t i = 0; i < kernel.sizes.size(); ++i) {
      packed.resize(kernel.offsets[i] + kernel.sizes[i]);
      std::memcpy(packed.data() + kernel.offsets[i], arguments.bytes[i].data(), kernel.sizes[i]);
    }
    std::size_t size = packed.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    return cuLaunchKernel(kernel.handle, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, extra);
  }
  if (words[0] == "launch-ex") {
    CUlaunchConfig config{};
    config.gridDimX = 1;
    config.hStream = stream;
    return cuLaunchKernelEx(&config, kernel.handle, arguments.values.data(), nullptr);
  }
  const bool nested = words[0] == "nested-launch", runtime = nested || words[0] == "runtime-launch";
  if (runtime) fake_runtime("cudaLaunchKernel_v7000", true);
  if (nested) fake_runtime("__cudaLaunchKernel_v13000", true);
  const CUresult result = cuLaunchKernel(kernel.handle, 2, 1, 1, 32, 1, 1, 0, stream, arguments.values.data(), nullptr);
  if (nested) fake_runtime("__cudaLaunchKernel_v13000", false);
  if (runtime) fake_runtime("cudaLaunchKernel_v7000", false);
  return result;
}

template <class Parameters = CUDA_KERNEL_NODE_PARAMS>
Parameters node_parameters(const Kernel& kernel, Arguments& arguments) {
  Parameters parameters{};
  parameters.func = kernel.handle;
  parameters.gridDimX = 1;
  parameters.kernelParams = arguments.values.data();
  return parameters;
}

CUresult use_context() {
  CUcontext context = nullptr;
  const CUresult result = cuDevicePrimaryCtxRetain(&context, 0);
  return result == CUDA_SUCCESS ? cuCtxSetCurrent(context) : result;
}

CUresult graphs_and_streams(const Words& words) {
  const std::string& verb = words[0];
  if (verb == "stream") return cuStreamCreate(&streams[words.at(1)], 0);
  if (verb == "event") return cuEventCreate(&events[words.at(1)], 0);
  if (verb == "record") return cuEventRecord(events.at(words.at(1)), streams.at(words.at(2)));
  if (verb == "wait") return cuStreamWaitEvent(streams.at(words.at(2)), events.at(words.at(1)), 0);
  if (verb == "destroy-stream") return cuStreamDestroy_v2(streams.at(words.at(1)));
  if (verb == "destroy-event") return cuEventDestroy_v2(events.at(words.at(1)));
  if (verb == "synchronize") return cuCtxSynchronize();
  if (verb == "no-context") return cuCtxSetCurrent(nullptr);
  if (verb == "context") return use_context();
  if (verb == "capture") return cuStreamBeginCapture_v2(streams.at(words.at(1)), CU_STREAM_CAPTURE_MODE_GLOBAL);
  if (verb == "end-capture") return cuStreamEndCapture(streams.begin()->second, &graphs[words.at(1)]);
  if (verb == "instantiate") return cuGraphInstantiateWithFlags(&execs[words.at(1)], graphs.at(words.at(2)), 0);
  if (verb == "destroy-exec") return cuGraphExecDestroy(execs.at(words.at(1)));
  if (verb == "graph") return cuGraphLaunch(execs.at(words.at(1)), streams.empty() ? nullptr : streams.begin()->second);
  if (verb == "add-node") {
    if (graphs.count(words.at(2)) == 0) require(cuGraphCreate(&graphs[words.at(2)], 0), verb);
    const Kernel& kernel = kernels.at(words.at(3));
    Arguments arguments{kernel, words, 4};
    const CUDA_KERNEL_NODE_PARAMS parameters = node_parameters(kernel, arguments);
    return cuGraphAddKernelNode_v2(&nodes[words.at(1)], graphs.at(words.at(2)), nullptr, 0, &parameters);
  }
  if (verb == "set-node") {
    const Kernel& kernel = kernels.at(words.at(3));
    Arguments arguments{kernel, words, 4};
    const CUDA_KERNEL_NODE_PARAMS parameters = node_parameters(kernel, arguments);
    return cuGraphExecKernelNodeSetParams_v2(execs.at(words.at(1)), nodes.at(words.at(2)), &parameters);
  }
  if (verb == "set-any") {
    const Kernel& kernel = kernels.at(words.at(3));
    Arguments arguments{kernel, words, 4};
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_KERNEL;
    parameters.kernel = node_parameters<CUDA_KERNEL_NODE_PARAMS_v3>(kernel, arguments);
    CUgraphNode node = nodes.at(words.at(2));
    return words.at(1) == "-" ? cuGraphNodeSetParams(node, &parameters)
                              : cuGraphExecNodeSetParams(execs.at(words.at(1)), node, &parameters);
  }
  fail("unknown line: " + verb);
}

CUresult allocations(const Words& words) {
  const std::string& verb = words[0];
  if (verb == "alloc") return cuMemAlloc_v2(&memory[words.at(1)], std::stoull(words.at(2)));
  if (verb == "alloc-async")
    return cuMemAllocAsync(&memory[words.at(1)], std::stoull(words.at(2)), streams.at(words.at(3)));
  if (verb == "free") return cuMemFree_v2(memory.at(words.at(1)));
  if (verb == "free-async") return cuMemFreeAsync(memory.at(words.at(1)), streams.at(words.at(2)));
  if (verb == "hidden") {
    memory[words.at(1)] = fake_hidden_alloc(std::stoull(words.at(2)));
    return CUDA_SUCCESS;
  }
  auto& [address, handle] = mapped[words.at(1)];
  if (verb == "map") {
    const std::size_t bytes = std::stoull(words.at(2));
    CUmemAllocationProp properties{};
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    require(cuMemAddressReserve(&address, bytes, 0, 0, 0), verb);
    require(cuMemCreate(&handle, bytes, &properties, 0), verb);
    memory[words.at(1)] = address;
    return cuMemMap(address, bytes, 0, handle, 0);
  }
  require(cuMemUnmap(address, std::stoull(words.at(2))), verb);
  require(cuMemRelease(handle), verb);
  return cuMemAddressFree(address, std::stoull(words.at(2)));
}

/// Sets an attribute of CUPTI's activities. @return CUPTI's status, as a number
CUresult set_attribute(int attribute, std::size_t bytes) {
  void* const cupti = dlopen(std::getenv("TIDEPOOL_CUPTI"), RTLD_NOW | RTLD_NOLOAD);
  void* const call = cupti == nullptr ? nullptr : dlsym(cupti, "cuptiActivitySetAttribute");
  if (call == nullptr) fail("no CUPTI is loaded");
  std::vector<unsigned char> value(std::max<std::size_t>(bytes, 1));
  return static_cast<CUresult>(
      reinterpret_cast<int (*)(int, std::size_t*, void*)>(call)(attribute, &bytes, value.data()));
}

[[noreturn]] void replace(const std::string& script) {
  execl(program.c_str(), program.c_str(), script.c_str(), nullptr);
  fail("exec");
}

CUresult encode(CUtensorMap& map, std::uint64_t address) {
  return cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, reinterpret_cast<void*>(address), nullptr,
                                nullptr, nullptr, nullptr, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/// Waits until the file exists, at most two minutes. Meanwhile the job makes driver calls that leave no records: the
/// recorder can detach CUPTI only within a call.
void await(const std::string& path) {
  for (int waited_ms = 0; access(path.c_str(), F_OK) != 0; waited_ms += 5) {
    if (waited_ms > 120'000) fail("nobody made " + path);
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    CUtensorMap unused;
    require(encode(unused, 0), path);
  }
}

/// Plays lines that end the job, wait, start processes, or call NVTX or the recorder.
/// @return whether the line was one of these
bool processes(const Words& words) {
  const std::string& verb = words[0];
  if (verb == "await") {
    await(words.at(1));
  } else if (verb == "raise") {
    std::raise(std::stoi(words.at(1)));
  } else if (verb == "exit") {
    std::exit(std::stoi(words.at(1)));
  } else if (verb == "_exit") {
    _exit(std::stoi(words.at(1)));
  } else if (verb == "exec") {
    replace(words.at(1));
  } else if (verb == "fork") {
    const pid_t child = fork();
    if (child == 0 && words.size() > 1) replace(words.at(1));
    if (child == 0) std::exit(0);  // like a worker process that never uses the device
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) fail("the child failed");
  } else if (verb == "delay") {
    fake_delay(static_cast<unsigned>(std::stoul(words.at(1))));
  } else if (verb == "hang") {
    pause();
  } else if (verb == "push") {
    nvtxRangePushA(words.at(1).c_str());
  } else if (verb == "pop") {
    nvtxRangePop();
  } else if (verb == "mark") {
    nvtxMarkA(words.at(1).c_str());
  } else if (verb == "hook-iteration" || verb == "hook-end") {
    void* const recorder = dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW | RTLD_NOLOAD);
    void* const call = recorder == nullptr ? nullptr : dlsym(recorder, "tidepool_iteration");
    if (call == nullptr) fail("the recorder has no tidepool_iteration");
    reinterpret_cast<void (*)(int)>(call)(verb == "hook-end" ? 1 : 0);
  } else {
    return false;
  }
  return true;
}

void run(const std::string& line) {
  std::istringstream text{line};
  Words words;
  for (std::string word; text >> word;) words.push_back(word);
  if (words.empty() || words[0][0] == '#' || processes(words)) return;
  if (words[0] == "refused") {
    expected = std::stoi(words.at(1));
    words.erase(words.begin(), words.begin() + 2);
  }
  const std::string& verb = words[0];
  if (verb == "function") {
    Kernel kernel;
    for (std::size_t i = 3; i < words.size(); ++i) {
      kernel.sizes.push_back(std::stoull(words[i]));
      kernel.offsets.push_back(std::stoull(words[i].substr(words[i].find('@') + 1)));
    }
    kernel.handle = fake_function(words.at(2).c_str(), kernel.offsets.data(), kernel.sizes.data(), kernel.sizes.size());
    kernels[words.at(1)] = kernel;
  } else if (verb == "unload") {
    fake_unload(kernels.at(words.at(1)).handle);
  } else if (verb == "attribute") {
    require(set_attribute(std::stoi(words.at(1)), std::stoull(words.at(2))), line);
  } else if (verb == "tensor-map") {
    require(encode(maps[words.at(1)], word_of(words.at(2))), line);
  } else if (verb == "copy") {
    require(cuMemcpyDtoDAsync_v2(word_of(words.at(1)), word_of(words.at(2)), std::stoull(words.at(3)), nullptr), line);
  } else if (verb == "copy-in") {
    require(cuMemcpyHtoDAsync_v2(word_of(words.at(1)), &memory, std::stoull(words.at(2)), nullptr), line);
  } else if (verb == "copy-out") {
    static char host[1 << 20];
    require(cuMemcpyDtoHAsync_v2(host, word_of(words.at(1)), std::stoull(words.at(2)), nullptr), line);
  } else if (verb == "set") {
    require(cuMemsetD32Async(word_of(words.at(1)), 0, std::stoull(words.at(2)), nullptr), line);
  } else if (verb.find("launch") != std::string::npos) {
    require(launch(words), line);
  } else if (verb.find("alloc") == 0 || verb.find("free") == 0 || verb == "map" || verb == "unmap" ||
             verb == "hidden") {
    require(allocations(words), line);
  } else {
    require(graphs_and_streams(words), line);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: fake_job SCRIPT");
  program = argv[0];
  std::ifstream script{argv[1]};
  if (!script) fail(std::string{argv[1]} + ": cannot be read");
  cuInit(0);
  require(use_context(), "context");
  std::vector<std::string> lines;
  for (std::string line; std::getline(script, line);) lines.push_back(line);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool repeat = lines[i].rfind("repeat ", 0) == 0, parallel = lines[i].rfind("threads ", 0) == 0;
    if (!repeat && !parallel) {
      run(lines[i]);
      continue;
    }
    const int times = std::stoi(lines[i].substr(lines[i].find(' ')));
    const std::size_t first = i + 1;
    while (lines.at(i) != (repeat ? "again" : "join")) ++i;
    const auto block = [&] {
      require(use_context(), "context");
      for (std::size_t k = first; k < i; ++k) run(lines[k]);
    };
    std::vector<std::thread> threads;
    for (int round = 0; round < times; ++round)
      if (repeat)
        block();
      else
        threads.emplace_back(block);
    for (std::thread& thread : threads) thread.join();
  }
}
