# Writes OUT, a C++ source that holds each of FILES as a text under its name: what
# src/backends/opencl/kernel_texts.h declares.
set(entries "")
foreach(file ${FILES})
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" text)
  string(APPEND entries "    {\"${name}\", R\"kernel(${text})kernel\"},\n")
endforeach()
file(WRITE "${OUT}" "#include \"backends/opencl/kernel_texts.h\"

namespace quintet::opencl {

const std::vector<KernelText>& kernel_texts() {
  static const std::vector<KernelText> kTexts = {
${entries}  };
  return kTexts;
}

}  // namespace quintet::opencl
")
