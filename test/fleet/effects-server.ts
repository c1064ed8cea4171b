import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { stringify } from 'yaml';

export interface EffectsServer {
  /** How often each call arrived, by its name: what it does, and for which order. */
  readonly hits: ReadonlyMap<string, number>;
  /** How often a call with this `Idempotency-Key` arrived; a read has none. */
  readonly keys: ReadonlyMap<string, number>;
  /** Asked for each call that arrives: true leaves it without an answer until `letGo`. */
  holds: (name: string) => boolean;
  letGo(): void;
  /** Writes the tools that call it, as files of a folder: one for each effect, and `guarded`, which asks first. */
  writeTools(folder: string): void;
  close(): void;
}

export const effects = ['Read', 'Destructive', 'External'] as const;

/** What tools change in the world outside: a server that counts what arrives. */
export const startEffectsServer = async (): Promise<EffectsServer> => {
  const hits = new Map<string, number>();
  const keys = new Map<string, number>();
  const held: (() => void)[] = [];
  const server = createServer((request, response) => {
    const name = (request.url ?? '').slice(1);
    hits.set(name, (hits.get(name) ?? 0) + 1);
    const key = request.headers['idempotency-key'];
    if (typeof key === 'string') keys.set(key, (keys.get(key) ?? 0) + 1);
    const answer = (): void => void response.setHeader('content-type', 'text/plain').end('ok');
    if (world.holds(name)) held.push(answer);
    // Long enough for a kill to meet calls that are out.
    else setTimeout(answer, 30);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const world: EffectsServer = {
    hits,
    keys,
    holds: () => false,
    letGo() {
      for (const answer of held.splice(0)) answer();
    },
    writeTools(folder) {
      const write = (name: string, effect: string, requiresApproval: boolean): void =>
        writeFileSync(
          join(folder, `${name}.yaml`),
          stringify({
            name,
            description: `A call with the effect ${effect}.`,
            inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
            effect,
            requiresApproval,
            request: { method: effect === 'Read' ? 'GET' : 'POST', url: `${base}/${effect}/{{name}}` },
          }),
        );
      for (const effect of effects) write(effect.toLowerCase(), effect, false);
      write('guarded', 'External', true);
    },
    close: () => void server.close(),
  };
  return world;
};
