import { after, test } from 'node:test';
import { type Api, createApi } from './api.ts';
import { chosenTarget, hasOwners, isShared, type OwnServer, type Settings, startServer } from './server.ts';

export interface RuleOptions {
  /** Settings that the rule is about; a server that was started without them cannot be asked. */
  readonly settings?: Settings;
  /** True: callers of one tenant share what, where sessions have owners, is one caller's own. */
  readonly shares?: boolean;
  /**
   * Why what it counts or remembers is each process's own, in words of a rule: where several serve, each of them is asked
   * by itself.
   */
  readonly perProcess?: string;
}

const chosen = chosenTarget();
const servers = new Map<string, Promise<OwnServer>>();
/** How many rules are still to be asked of a server: the last one stops it, since eight processes each would be too many. */
const rulesLeft = new Map<string, number>();

const ownServer = (key: string, settings: Settings): Promise<OwnServer> => {
  let server = servers.get(key);
  if (server === undefined) {
    server = startServer(settings);
    servers.set(key, server);
  }
  return server;
};

const doneWith = async (key: string): Promise<void> => {
  const left = (rulesLeft.get(key) ?? 0) - 1;
  rulesLeft.set(key, left);
  const server = servers.get(key);
  if (left > 0 || server === undefined) return;
  servers.delete(key);
  await (await server).stop();
};

after(async () => {
  // One that did not start fails its rules; the others are stopped all the same, or this process would not end.
  for (const server of await Promise.allSettled(servers.values()))
    if (server.status === 'fulfilled') await server.value.stop();
});

/** One rule, or several that one scenario proves: `rule('RUN-5 RUN-6', 'what holds', async (api) => …)`. */
export const rule = (
  ids: string,
  what: string,
  body: (api: Api) => Promise<void>,
  { settings, shares = false, perProcess }: RuleOptions = {},
): void => {
  const skip =
    (chosen !== undefined || isShared()) && settings !== undefined
      ? `needs a server with ${Object.entries(settings)
          .map(([key, value]) => `${key}=${value}`)
          .join(', ')}`
      : shares && hasOwners()
        ? 'callers share here what has one owner'
        : false;
  const key = JSON.stringify(settings ?? {});
  if (skip === false) rulesLeft.set(key, (rulesLeft.get(key) ?? 0) + 1);
  test(`${ids} ${what}`, { skip }, async () => {
    const target = chosen ?? (await ownServer(key, settings ?? {}));
    try {
      for (const each of (perProcess === undefined ? null : target.processes) ?? [target]) await body(createApi(each));
    } finally {
      await doneWith(key);
    }
  });
};
