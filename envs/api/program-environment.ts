// Selects the environment variables of a child process: common variables (search paths, locale, user, temporary
// folders) and the additional variables for its kind of program. All other variables are dropped, because they may hold
// keys and tokens.

/**
 * Variable that marks every process that a run starts, directly or indirectly. The run finds its processes by this
 * variable. The value is not secret.
 */
export const startedByVariable = 'RAGEN_STARTED_BY';

/** Variable names, or prefixes that end in `*`; case-sensitive except on Windows. */
const common = [
  startedByVariable,
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'TMPDIR',
  'TMP',
  'TEMP',
  'LANG',
  'LANGUAGE',
  'LC_*',
  'TZ',
  'TERM',
  'LD_LIBRARY_PATH',
  'DYLD_LIBRARY_PATH',
  // Without these variables, Windows does not find programs or cannot start them.
  'SYSTEMROOT',
  'SYSTEMDRIVE',
  'WINDIR',
  'COMSPEC',
  'PATHEXT',
  'USERPROFILE',
  'USERNAME',
  'HOMEDRIVE',
  'HOMEPATH',
  'APPDATA',
  'LOCALAPPDATA',
  'PROGRAMDATA',
  'PROGRAMFILES*',
  'COMMONPROGRAMFILES*',
  'NUMBER_OF_PROCESSORS',
  'PROCESSOR_*',
  'OS',
  'PSMODULEPATH',
];

/** Additional variables, by kind of program. */
export const variablesFor = {
  /** Programs that run on Node.js, or on Electron in its Node.js mode (ELECTRON_RUN_AS_NODE). */
  node: ['ELECTRON_RUN_AS_NODE', 'NODE_OPTIONS', 'NODE_PATH', 'NODE_ICU_DATA', 'NODE_V8_COVERAGE', 'NVM_*', 'VOLTA_*'],
  /** HTTP proxies and certificates. */
  network: [
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'ALL_PROXY',
    'NO_PROXY',
    'http_proxy',
    'https_proxy',
    'all_proxy',
    'no_proxy',
    'NODE_EXTRA_CA_CERTS',
    'NODE_USE_ENV_PROXY',
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
  ],
  /** Data and cache folders. */
  folders: ['XDG_*', 'HF_HOME', 'HF_HUB_CACHE', 'HF_ENDPOINT', 'HF_HUB_OFFLINE'],
  /** Clients of container engines: where the engine is, and how it is configured. */
  containers: [
    'DOCKER_HOST',
    'DOCKER_CONTEXT',
    'DOCKER_CONFIG',
    'DOCKER_CERT_PATH',
    'DOCKER_TLS_VERIFY',
    'CONTAINER_HOST',
    'CONTAINER_CONNECTION',
    'CONTAINER_SSHKEY',
    'CONTAINERS_CONF',
    'CONTAINERS_STORAGE_CONF',
    'CONTAINERS_REGISTRIES_CONF',
    'DBUS_SESSION_BUS_ADDRESS',
    'XDG_*',
  ],
  /** GPU drivers and numerical libraries. */
  devices: [
    'CUDA_*',
    'NVIDIA_*',
    'NCCL_*',
    'CUDNN_*',
    'ORT_*',
    'OMP_*',
    'OPENBLAS_*',
    'MKL_*',
    'VK_*',
    'MESA_*',
    'LIBGL_*',
    'GALLIUM_*',
    'LP_*',
    'EGL_*',
    'DRI_PRIME',
    'DISPLAY',
    'WAYLAND_DISPLAY',
    'XDG_RUNTIME_DIR',
    'ROCR_*',
    'HIP_*',
    'HSA_*',
    'METAL_*',
    'MTL_*',
  ],
} as const;

/**
 * The variables of `env` that are common or match `names`.
 * @param names exact names, or prefixes that end in `*`
 */
export function programEnvironment(
  names: readonly string[] = [],
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
): NodeJS.ProcessEnv {
  const plain = (name: string) => (platform === 'win32' ? name.toUpperCase() : name);
  const wanted = [...common, ...names].map(plain);
  const exact = new Set(wanted.filter(name => !name.endsWith('*')));
  const prefixes = wanted.filter(name => name.endsWith('*')).map(name => name.slice(0, -1));
  const isWanted = (name: string) => exact.has(name) || prefixes.some(prefix => name.startsWith(prefix));
  return Object.fromEntries(Object.entries(env).filter(([name]) => isWanted(plain(name))));
}
