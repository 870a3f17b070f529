# SPDX-License-Identifier: Apache-2.0
# Tests with a build of their own: folders below this one that have a CMakeLists.txt. By glob.
file(GLOB parts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
foreach(part ${parts})
  get_filename_component(folder ${part} DIRECTORY)
  add_subdirectory(${folder})
endforeach()
