import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { type LookupFunction, Socket, type TcpSocketConnectOpts } from 'node:net';
import type { TestContext } from 'node:test';

type Names = Readonly<Record<string, (lookup: number) => readonly string[]>>;

export interface SimulatedInternet {
  /** How often the system was asked for this name. */
  lookups(name: string): number;
  /** Where connections by name, or to other machines, went: `address:port`, in their order. */
  readonly connected: readonly string[];
}

const loopback = '127.0.0.1';
const families = (address: string): 4 | 6 => (address.includes(':') ? 6 : 4);

/**
 * What the names of a test mean to this process, each look-up (from 1) by itself, and a network in which every other address
 * is a server of this machine with the same port: no packet leaves it. What a socket is told to connect to is recorded as
 * it was told.
 */
export const simulateInternet = (t: TestContext, names: Names): SimulatedInternet => {
  const asked = new Map<string, number>();
  const connected: string[] = [];
  const own = { lookup: dns.lookup, promise: dns.promises.lookup, connect: Socket.prototype.connect };

  const addressesOf = (name: string): { address: string; family: 4 | 6 }[] | null => {
    const answer = names[name];
    if (answer === undefined) return null;
    const count = (asked.get(name) ?? 0) + 1;
    asked.set(name, count);
    return answer(count).map((address) => ({ address, family: families(address) }));
  };
  const lookup: LookupFunction = (name, options, callback) => {
    const addresses = addressesOf(name);
    const [first] = addresses ?? [];
    if (addresses === null || first === undefined) own.lookup(name, options, callback as never);
    else if (options.all === true) callback(null, addresses);
    else callback(null, first.address, first.family);
  };
  const promise = async (name: string, options: dns.LookupAllOptions): Promise<unknown> =>
    addressesOf(name) ?? own.promise(name, options);

  /** Of the addresses that a socket has to choose from each counts as one that it connects to. */
  const routed =
    (find: LookupFunction, port: number): LookupFunction =>
    (name, options, callback) =>
      find(name, options, (error, found, family) => {
        if (error !== null) return callback(error, found, family);
        const addresses = Array.isArray(found) ? found : [{ address: found, family: family ?? 4 }];
        connected.push(...addresses.map(({ address }) => `${address}:${port}`));
        if (options.all === true) callback(null, [{ address: loopback, family: 4 }]);
        else callback(null, loopback, 4);
      });

  const connect = function (this: Socket, ...args: unknown[]): Socket {
    const normalized = Array.isArray(args[0]) ? (args[0] as unknown[]) : args;
    const options = normalized[0] as Partial<TcpSocketConnectOpts> | undefined;
    const { host, port } = options ?? {};
    if (typeof host === 'string' && typeof port !== 'undefined' && host !== 'localhost') {
      const isLiteral = /^[\d.]+$|:/.test(host);
      if (!isLiteral) normalized[0] = { ...options, lookup: routed(options?.lookup ?? lookup, Number(port)) };
      else if (host !== loopback) {
        connected.push(`${host}:${port}`);
        normalized[0] = { ...options, host: loopback };
      }
    }
    return Reflect.apply(own.connect, this, args) as Socket;
  };

  dns.lookup = lookup as never;
  dns.promises.lookup = promise as never;
  Socket.prototype.connect = connect as never;
  syncBuiltinESMExports();
  t.after(() => {
    dns.lookup = own.lookup;
    dns.promises.lookup = own.promise;
    Socket.prototype.connect = own.connect;
    syncBuiltinESMExports();
  });
  return { lookups: (name) => asked.get(name) ?? 0, connected };
};
