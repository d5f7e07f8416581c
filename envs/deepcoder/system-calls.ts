// System calls that are refused to programs written by a model. Each architecture has its own call numbers. Some of
// these calls allocate memory outside the memory limits: System V segments, memory files, message queues, pinned
// buffers. The other calls give access to the kernel, the machine or other processes, for example key rings, sockets,
// tracing and mounts. Call numbers are from Linux's asm/unistd_64.h (x64) and asm-generic/unistd.h (arm64).

export type Processor = 'x64' | 'arm64';

/** AUDIT_ARCH_* of linux/audit.h. */
export const auditArch: Record<Processor, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };

/**
 * The last call number of Linux 5.17. Calls with higher numbers were not reviewed. They fail with ENOSYS, as on a
 * kernel without these calls. On x64, the x32 calls also have higher numbers: they start at 2³⁰.
 */
export const lastKnown = 450;

const E = { EPERM: 1, ENOSYS: 38 } as const;

/** Call numbers on x64 and arm64; null if the call does not exist on arm64. */
type Numbers = readonly [x64: number, arm64: number | null];

/** Calls that always fail with EPERM. */
const refused: Record<string, Numbers> = {
  // key rings, because all processes of a login session inherit its keys
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  // memory that is not counted as a process's memory
  shmget: [29, 194],
  shmat: [30, 196],
  shmctl: [31, 195],
  msgget: [68, 186],
  semget: [64, 190],
  mq_open: [240, 180],
  memfd_create: [319, 279],
  memfd_secret: [447, 447],
  io_setup: [206, 0],
  vmsplice: [278, 75],
  remap_file_pages: [216, 234],
  // sockets, except socketpair
  socket: [41, 198],
  connect: [42, 203],
  bind: [49, 200],
  listen: [50, 201],
  accept: [43, 202],
  accept4: [288, 242],
  setsockopt: [54, 208],
  // access to other processes
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  process_mrelease: [448, 448],
  pidfd_getfd: [438, 438],
  kcmp: [312, 272],
  // namespaces, mounts, file handles
  unshare: [272, 97],
  setns: [308, 268],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  // kernel internals
  bpf: [321, 280],
  seccomp: [317, 277],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  fanotify_init: [300, 262],
  lookup_dcookie: [212, 18],
  personality: [135, 92],
  modify_ldt: [154, null],
  iopl: [172, null],
  ioperm: [173, null],
  mbind: [237, 235],
  set_mempolicy: [238, 237],
  set_mempolicy_home_node: [450, 450],
  migrate_pages: [256, 238],
  move_pages: [279, 239],
  // administration
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  acct: [163, 89],
  syslog: [103, 116],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  vhangup: [153, 58],
};

/**
 * A rule for one call; a refused call fails with `errno`. Without `when`, the call is always refused. With `refuse:
 * 'these'`, the call is refused if `argument & mask` equals one of `values`. With `refuse: 'others'`, the call is
 * refused if `argument & mask` equals none of `values`.
 */
export interface Rule {
  name: string;
  number: number;
  errno: number;
  when?: { argument: number; mask: number; values: readonly number[]; refuse: 'these' | 'others' };
}

const all = 0xffffffff;
const [AF_UNIX, SOCK_STREAM] = [1, 1];
/** All clone flags that create a namespace: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const newNamespaces = 0x7e020000;
const [TIOCSTI, TIOCLINUX, F_SETPIPE_SZ, PR_SET_SECCOMP] = [0x5412, 0x541c, 1031, 22];

const conditional: [string, Numbers, Rule['when']][] = [
  // Only pairs of stream sockets are allowed, because a datagram socket could send to the address of another socket.
  ['socketpair', [53, 199], { argument: 0, mask: all, values: [AF_UNIX], refuse: 'others' }],
  ['socketpair', [53, 199], { argument: 1, mask: 0xf, values: [SOCK_STREAM], refuse: 'others' }],
  ['clone', [56, 220], { argument: 0, mask: newNamespaces, values: [0], refuse: 'others' }],
  ['ioctl', [16, 29], { argument: 1, mask: all, values: [TIOCSTI, TIOCLINUX], refuse: 'these' }],
  ['fcntl', [72, 25], { argument: 1, mask: all, values: [F_SETPIPE_SZ], refuse: 'these' }],
  ['prctl', [157, 167], { argument: 0, mask: all, values: [PR_SET_SECCOMP], refuse: 'these' }],
];

/**
 * Returns all rules for an architecture. clone3 receives its flags by pointer, so a filter cannot read them. Therefore
 * clone3 always fails with ENOSYS, and the C library then calls clone instead.
 */
export function rulesFor(processor: Processor): Rule[] {
  const column = processor === 'x64' ? 0 : 1;
  const rule = (name: string, numbers: Numbers, errno: number, when?: Rule['when']): Rule[] => {
    const number = numbers[column];
    return number === null ? [] : [{ name, number, errno, ...(when && { when }) }];
  };
  return [
    ...Object.entries(refused).flatMap(([name, numbers]) => rule(name, numbers, E.EPERM)),
    ...conditional.flatMap(([name, numbers, when]) => rule(name, numbers, E.EPERM, when)),
    ...rule('clone3', [435, 435], E.ENOSYS),
  ];
}
