# SPDX-License-Identifier: Apache-2.0
defmodule Mix.Tasks.Compile.TracewheelNif do
  @moduledoc false
  use Mix.Task.Compiler

  # The libraries are built by the system's compiler, into priv/.
  def run(_) do
    case System.cmd(Path.expand("build.sh"), ["--nif"], stderr_to_stdout: true) do
      {_, 0} ->
        Mix.Project.build_structure()
        {:ok, []}

      {text, _} ->
        Mix.shell().error(text)
        {:error, []}
    end
  end
end

defmodule Tracewheel.MixProject do
  use Mix.Project

  def project do
    [
      app: :tracewheel,
      version: "0.1.0",
      language: :erlang,
      compilers: [:tracewheel_nif] ++ Mix.compilers(),
      erlc_options: [:debug_info],
      deps: []
    ]
  end

  def application, do: [extra_applications: []]
end
