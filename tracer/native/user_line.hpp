#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

// Functions of CPython's C interface that all versions from 3.9 on export, so that no header of one version is needed.
extern "C" {
struct _object;
int PyGILState_Ensure();
void PyGILState_Release(int);
_object* PyEval_GetFrame();
_object* PyFrame_GetBack(_object*);
_object* PyFrame_GetCode(_object*);
int PyFrame_GetLineNumber(_object*);
_object* PyObject_GetAttrString(_object*, const char*);
const char* PyUnicode_AsUTF8(_object*);
long PyLong_AsLong(_object*);
void PyErr_Fetch(_object**, _object**, _object**);
void PyErr_Restore(_object*, _object*, _object*);
void Py_IncRef(_object*);
void Py_DecRef(_object*);
}

namespace tidepool::native {

/// Finds the innermost frame of the user's code. Its methods take the interpreter's lock, so that a caller holds no
/// lock that another thread may want while it has the interpreter's.
class UserLine {
 public:
  using IsUser = int (*)(const char* file);

  void set_judge(IsUser is_user) { is_user_ = is_user; }

  /// The number of a file in files() above 32 bits with the line; 0 if no code of the user's runs.
  std::int64_t now() {
    const int state = PyGILState_Ensure();
    std::int64_t found = 0;
    _object* frame = PyEval_GetFrame();
    if (frame) Py_IncRef(frame);
    while (frame && !found) {
      _object* code = PyFrame_GetCode(frame);
      const Code& known = look_up(code);
      Py_DecRef(code);
      if (known.file > 0) {
        const int line = PyFrame_GetLineNumber(frame);
        found = std::int64_t{known.file} << 32 | (line > 0 ? line : known.first_line);
      }
      _object* back = found ? nullptr : PyFrame_GetBack(frame);
      Py_DecRef(frame);
      frame = back;
    }
    if (frame) Py_DecRef(frame);
    PyGILState_Release(state);
    return found;
  }

  /// Forgets all code objects. The caller has the interpreter's lock.
  void clear() {
    for (const auto& [code, known] : codes_) Py_DecRef(code);
    codes_.clear();
  }

  const std::vector<std::string>& files() const { return files_; }

 private:
  struct Code {
    int file = 0;  ///< number of the file, from 1; 0 if it is not the user's
    int first_line = 0;
  };

  /// Keeps a reference to the code, so that its address stays its own.
  const Code& look_up(_object* code) {
    if (const auto known = codes_.find(code); known != codes_.end()) return known->second;
    _object *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Code found;
    _object* file = PyObject_GetAttrString(code, "co_filename");
    _object* line = PyObject_GetAttrString(code, "co_firstlineno");
    const char* text = file ? PyUnicode_AsUTF8(file) : nullptr;
    if (text && is_user_ && is_user_(text)) {
      files_.emplace_back(text);
      found = {static_cast<int>(files_.size()), line ? static_cast<int>(PyLong_AsLong(line)) : 0};
    }
    if (file) Py_DecRef(file);
    if (line) Py_DecRef(line);
    PyErr_Restore(type, value, trace);
    Py_IncRef(code);
    return codes_.emplace(code, found).first->second;
  }

  IsUser is_user_ = nullptr;
  std::unordered_map<_object*, Code> codes_;
  std::vector<std::string> files_;
};

}  // namespace tidepool::native
