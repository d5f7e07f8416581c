// Observes the method calls of an object. Before each call, `begin` receives the method's name and arguments, and may
// return a function. This function is called when the method has returned or, if the method returns a promise, when the
// promise has settled. Arguments, results and errors are passed on unchanged.

/** Returns undefined for a call that need not be observed. */
type Begin = (method: string, args: readonly unknown[]) => (() => void) | undefined;

/** Returns a proxy of `target` whose calls are observed. */
export function observedCalls<T extends object>(target: T, begin: Begin): T {
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

function observed(target: object, name: string, method: Method, begin: Begin): Method {
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
