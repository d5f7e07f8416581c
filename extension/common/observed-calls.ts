// An object whose method calls are observed: before a call, `begin` gets the method's name and arguments; what it
// returns is called when the promise that the method returned has settled. Everything else is passed on unchanged.

/** Returns a view of `target` with observed calls. `begin` returns undefined for calls that it does not observe. */
export function observedCalls<T extends object>(
  target: T,
  begin: (method: string, args: readonly unknown[]) => (() => void) | undefined,
): T {
  const methods = new Map<string, { value: unknown; observed: Method }>();
  return new Proxy(target, {
    get(_, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== 'function' || typeof key === 'symbol') return value;
      const known = methods.get(key);
      if (known?.value === value) return known.observed;
      const method = observed(target, key, value as Method, begin);
      methods.set(key, { value, observed: method });
      return method;
    },
    set: (_, key, value) => Reflect.set(target, key, value, target),
  });
}

type Method = (...args: unknown[]) => unknown;

function observed(
  target: object,
  name: string,
  method: Method,
  begin: (method: string, args: readonly unknown[]) => (() => void) | undefined,
): Method {
  return (...args) => {
    const end = begin(name, args);
    if (!end) return method.apply(target, args);
    let result: unknown;
    try {
      result = method.apply(target, args);
    } catch (error) {
      end();
      throw error;
    }
    if (result instanceof Promise) result.then(end, end);
    else end();
    return result;
  };
}
