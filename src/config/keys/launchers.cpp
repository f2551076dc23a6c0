#include "config/keys/forms.h"

// What people paste from command lines of torchrun, deepspeed and accelerate launch.
// Zeroth starts the ranks of one host itself (--ranks); MPI starts several hosts; nothing is TCP.
namespace zeroth::config {
namespace {

constexpr auto kHostsByMpi =
    "several hosts are started by MPI, which says how many there are: mpirun -n RANKS --hostfile "
    "FILE zeroth train ...";
constexpr auto kChosenByMpi =
    "use one of --ranks N (alias --num_gpus; this host) and mpirun --host HOST:SLOTS,... -n RANKS "
    "zeroth train ...";

Declarations host_keys() {
  return {
      off_too({1, "1:1"},
              also_called({"num_nodes"},
                          at({"num_machines"},
                             refused("nnodes", anything(1), "hosts of the run", kHostsByMpi)))),
      at({"machine_rank"},
         refused("node_rank",
                 whole(kNotNegative, 0),
                 "this host's number",
                 "MPI numbers the hosts: leave it out, and start the run once, with mpirun")),
      at({"deepspeed_config.deepspeed_hostfile", "mpirun_config.mpirun_hostfile"},
         also_called({"deepspeed_hostfile", "mpirun_hostfile"},
                     refused("hostfile",
                             text(),
                             "file that names the hosts and their slots",
                             "hosts are MPI's business: mpirun --hostfile FILE -n RANKS zeroth "
                             "train ..., where a missing file is an error"))),
      at({"deepspeed_config.deepspeed_inclusion_filter"},
         also_called({"deepspeed_inclusion_filter"},
                     refused("include", text(), "hosts and slots to use", kChosenByMpi))),
      at({"deepspeed_config.deepspeed_exclusion_filter"},
         also_called({"deepspeed_exclusion_filter"},
                     refused("exclude", text(), "hosts and slots to leave out", kChosenByMpi))),
      at({"deepspeed_config.deepspeed_multinode_launcher"},
         also_called(
             {"deepspeed_multinode_launcher"},
             harmless(
                 "launcher",
                 one_of(
                     {"pdsh", "standard", "openmpi", "mvapich", "mpich", "impi", "slurm", "nossh"}),
                 "what starts the ranks on other hosts",
                 "whatever starts zeroth on several hosts, their ranks meet by MPI"))),
      off_too({""},
              refused("launcher_args",
                      text(),
                      "further words for that launcher",
                      "write them after mpirun or srun itself")),
      harmless("force_multi",
               flag(false),
               "treat one host as several",
               "the ranks' places are found out, not assumed"),
      harmless("no_ssh", flag(false), "start this host's part alone", "ssh is never used"),
      harmless("no_ssh_check",
               flag(false),
               "do not test ssh first",
               "no other host is called before the start"),
      harmless("ssh_port",
               whole({.min = 1, .max = 65535}),
               "ssh's port",
               "no connection goes through ssh"),
      at({"mpirun_config.mpirun_ccl"},
         harmless("mpirun_ccl",
                  whole(kAtLeastOne, 1, "threads"),
                  "oneCCL's threads under mpirun",
                  "oneCCL is not used")),
  };
}

Declarations meeting_keys() {
  const Range port{.min = 0, .max = 65535};
  return {
      at({"main_process_ip"},
         harmless("master_addr",
                  text(),
                  "host where the ranks meet",
                  "there is no TCP: ranks of one host meet in shared memory, hosts by MPI")),
      at({"main_process_port"},
         harmless("master_port",
                  whole(port, 29500),
                  "port where the ranks meet",
                  "there is no TCP: no port is opened, the number at most names the run")),
      at({"rdzv_backend"},
         harmless("rdzv_backend",
                  text("static"),
                  "how torchrun's ranks find each other",
                  "no rendezvous is held by the ranks")),
      harmless("rdzv_endpoint",
               text(),
               "where torchrun's ranks find each other",
               "no server has to be found by the ranks"),
      harmless("rdzv_id",
               anything(),
               "torchrun's name of the run",
               "each run has a name of its own, taken from the launcher or made"),
      harmless("rdzv_conf",
               text(),
               "torchrun's further settings of the meeting",
               "--start_timeout is the only setting of the meeting"),
      harmless("standalone",
               flag(false),
               "torchrun without other hosts",
               "a run that zeroth starts is on this host alone"),
      harmless("local_addr", text(), "this host's address", "no host is called by its address"),
      at({"same_network"},
         harmless("same_network",
                  flag(false),
                  "whether all hosts are in one network",
                  "MPI finds the way between hosts")),
      harmless("no_local_rank",
               flag(false),
               "do not pass --local_rank",
               "--local_rank is not needed: the launcher's variables say which rank this is"),
      harmless("use_env",
               flag(false),
               "pass the local rank as a variable",
               "the launcher's variables are always read"),
  };
}

Declarations process_keys() {
  return {
      refused("max_restarts",
              whole(kNotNegative, 0),
              "how often torchrun starts a dead run again",
              "a run that died stays dead, so that its first error is seen: start it again "
              "yourself, later with --resume_from_checkpoint latest"),
      harmless("monitor_interval",
               number(kPositive, 0.1, "seconds"),
               "how often torchrun looks after its ranks",
               "a dead rank is noticed at once"),
      refused("log_dir",
              text(),
              "folder for each rank's output",
              "one rank speaks for all: redirect it with 2> FILE; metrics.jsonl is in output_dir"),
      off_too({0},
              refused("redirects",
                      anything("0"),
                      "ranks whose output torchrun writes to files",
                      "one rank speaks for all: redirect it with > FILE 2>&1")),
      off_too({0},
              refused("tee",
                      anything("0"),
                      "ranks whose output torchrun shows and writes",
                      "one rank speaks for all: pipe it through tee FILE")),
      harmless("role", text("default"), "torchrun's name of the ranks", "ranks have numbers only"),
      harmless("start_method",
               one_of({"spawn", "fork", "forkserver"}, "spawn"),
               "how torchrun starts processes",
               "ranks are programs of their own, started by exec"),
      harmless("no_python",
               flag(false),
               "the program is not a Python script",
               "zeroth is no Python script and never was"),
      harmless("module",
               flag(false),
               "the program is a Python module",
               "zeroth is its own program: no module is looked up"),
      harmless("bind_cores_to_rank",
               flag(false),
               "give each rank cores of its own",
               "cores are shared out by rank without being asked"),
      refused("bind_core_list",
              text(),
              "the cores to share out",
              "use taskset -c LIST zeroth train ..., and --threads for the threads of a rank"),
      refused("save_pid",
              flag(false),
              "write the launcher's process id to a file",
              "use the shell's: zeroth train ... & echo $!"),
      harmless("enable_each_rank_log",
               text(),
               "folder for each rank's log",
               "the other ranks say nothing that could be logged"),
      refused("elastic_training",
              flag(false),
              "let the number of ranks change while training",
              "a run keeps its ranks: stop it and resume it on another number"),
      harmless("min_elastic_nodes",
               whole({.min = 1, .also = -1}, -1),
               "fewest hosts of an elastic run",
               "elastic_training is refused, so hosts do not leave"),
      harmless("max_elastic_nodes",
               whole({.min = 1, .also = -1}, -1),
               "most hosts of an elastic run",
               "elastic_training is refused, so hosts do not join"),
      harmless("quiet", flag(false), "less noise on errors", "errors have no traceback to hide"),
  };
}

Declarations accelerate_launch_keys() {
  return {
      harmless("use_deepspeed",
               flag(false),
               "accelerate launch with DeepSpeed",
               "ZeRO is built in: zero_stage says how much is sharded"),
      harmless("multi_gpu",
               flag(false),
               "accelerate launch on several GPUs",
               "--ranks says how many processes there are"),
      refused("use_fsdp",
              flag(false),
              "accelerate launch with PyTorch's sharding",
              "use --zero_stage 3, which shards the same"),
      refused("use_megatron_lm",
              flag(false),
              "accelerate launch with Megatron",
              "use --zero_stage 3 to divide the model"),
      refused(
          "tpu", flag(false), "accelerate launch on TPUs", "there is no TPU here: leave it out"),
      at({"ipex_config.ipex"},
         harmless("ipex",
                  flag(false),
                  "accelerate launch with Intel's extension",
                  "oneDNN is used directly")),
      at({"ipex_config.use_xpu"},
         refused("use_xpu",
                 flag(false),
                 "compute on an Intel GPU",
                 "there is no such device here: leave it out")),
  };
}

}  // namespace

Declarations launcher_keys() {
  return joined({in_section("Hosts", host_keys()),
                 in_section("How ranks meet", meeting_keys()),
                 in_section("Processes", process_keys()),
                 in_section("accelerate launch", accelerate_launch_keys())});
}

}  // namespace zeroth::config
