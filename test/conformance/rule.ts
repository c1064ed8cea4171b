import { after, test } from 'node:test';
import { type Api, createApi } from './api.ts';
import { chosenTarget, hasOwners, type OwnServer, type Settings, startServer } from './server.ts';

export interface RuleOptions {
  /** Settings that the rule is about; a server that was started without them cannot be asked. */
  readonly settings?: Settings;
  /** True: callers of one tenant share what, where sessions have owners, is one caller's own. */
  readonly shares?: boolean;
  /** True: what it counts or remembers is each process's own; where several serve, each of them is asked by itself. */
  readonly perProcess?: boolean;
}

const servers = new Map<string, Promise<OwnServer>>();

const ownServer = (settings: Settings): Promise<OwnServer> => {
  const key = JSON.stringify(settings);
  let server = servers.get(key);
  if (server === undefined) {
    server = startServer(settings);
    servers.set(key, server);
  }
  return server;
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
  { settings, shares = false, perProcess = false }: RuleOptions = {},
): void => {
  const chosen = chosenTarget();
  const skip =
    chosen !== undefined && settings !== undefined
      ? `needs a server with ${Object.entries(settings)
          .map(([key, value]) => `${key}=${value}`)
          .join(', ')}`
      : shares && hasOwners()
        ? 'callers share here what has one owner'
        : false;
  test(`${ids} ${what}`, { skip }, async () => {
    const target = chosen ?? (await ownServer(settings ?? {}));
    for (const each of (perProcess ? target.processes : null) ?? [target]) await body(createApi(each));
  });
};
