// The variables that a started program gets: those by which programs are found and behave as the user is used to, and what it is known to
// need beside them. Keys and tokens lie in variables too, and what a program is not given it cannot lose: nothing is passed on by default.

/** By its value a run finds what it started, directly or not; it is no secret. */
export const startedByVariable = 'RAGEN_STARTED_BY';

/** Names, or beginnings of names that end in `*`; capitals count, but on Windows. */
const common = [
  startedByVariable,
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TMPDIR', 'TMP', 'TEMP', 'LANG', 'LANGUAGE', 'LC_*', 'TZ', 'TERM'],
  ...['LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH'],
  // Windows: without these, programs are not found, or cannot start.
  ...['SYSTEMROOT', 'SYSTEMDRIVE', 'WINDIR', 'COMSPEC', 'PATHEXT', 'USERPROFILE', 'USERNAME', 'HOMEDRIVE', 'HOMEPATH'],
  ...['APPDATA', 'LOCALAPPDATA', 'PROGRAMDATA', 'PROGRAMFILES*', 'COMMONPROGRAMFILES*', 'NUMBER_OF_PROCESSORS'],
  ...['PROCESSOR_*', 'OS', 'PSMODULEPATH'],
];

/** What a program is known to need beside the common variables. */
export const variablesFor = {
  /** Node.js, also where the editor's own runtime plays it. */
  node: ['ELECTRON_RUN_AS_NODE', 'NODE_OPTIONS', 'NODE_PATH', 'NODE_ICU_DATA', 'NODE_V8_COVERAGE', 'NVM_*', 'VOLTA_*'],
  /** HTTP by way of a proxy, and certificates. */
  network: ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'all_proxy', 'no_proxy', 'NODE_EXTRA_CA_CERTS', 'NODE_USE_ENV_PROXY', 'SSL_CERT_FILE', 'SSL_CERT_DIR'], // prettier-ignore
  /** Folders where data and caches lie. */
  folders: ['XDG_*', 'HF_HOME', 'HF_HUB_CACHE', 'HF_ENDPOINT', 'HF_HUB_OFFLINE'],
  /** Drivers of GPUs, and the libraries that compute. */
  devices: ['CUDA_*', 'NVIDIA_*', 'NCCL_*', 'CUDNN_*', 'ORT_*', 'OMP_*', 'OPENBLAS_*', 'MKL_*', 'VK_*', 'MESA_*', 'LIBGL_*', 'GALLIUM_*', 'LP_*', 'EGL_*', 'DRI_PRIME', 'DISPLAY', 'WAYLAND_DISPLAY', 'XDG_RUNTIME_DIR', 'ROCR_*', 'HIP_*', 'HSA_*', 'METAL_*', 'MTL_*'], // prettier-ignore
} as const;

/**
 * The common variables of `env`, and those named beside them.
 * @param names as written, or beginnings of names that end in `*`
 */
export function programEnvironment(
  names: readonly string[] = [],
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
): NodeJS.ProcessEnv {
  const plain = (name: string) => (platform === 'win32' ? name.toUpperCase() : name);
  const wanted = [...common, ...names].map(plain);
  const exact = new Set(wanted.filter(name => !name.endsWith('*')));
  const beginnings = wanted.filter(name => name.endsWith('*')).map(name => name.slice(0, -1));
  const isWanted = (name: string) => exact.has(name) || beginnings.some(beginning => name.startsWith(beginning));
  return Object.fromEntries(Object.entries(env).filter(([name]) => isWanted(plain(name))));
}
