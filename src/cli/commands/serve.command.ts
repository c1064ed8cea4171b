import process from 'node:process';
import { version } from '../../core/version.ts';
import type { CommandHost } from '../command-host.ts';
import { readConfig } from '../read-config.ts';
import { serveUntilStopped } from '../serving.ts';

/** `acp serve`: the service in the foreground, until a signal. */
export const registerServe = (host: CommandHost): void => {
  host.program
    .command('serve')
    .description('start the service; --url sets its listening address')
    .option('--prefix <path>', 'mount prefix of every operation (Host:Prefix)')
    .action(
      host.act(async (session, { options }) => {
        const { terminal, globals } = session;
        const prefix = options['prefix'] as string | undefined;
        const config = await readConfig(session, { url: globals.url, prefix });
        return serveUntilStopped(session, config, 'stdout', async ({ url, anonymous, log }) => {
          const where = { url, pid: process.pid, version };
          const message = 'The service listens';
          // With --json a program waits for the line, whatever the log leaves out.
          if (globals.json)
            await terminal.writeJson(
              `${JSON.stringify({ level: 'info', time: new Date().toISOString(), ...where, message })}\n`,
            );
          else terminal.note(`acp ${version} serves ${url} (process ${process.pid})`);
          // A person at a terminal has just been told.
          if (!globals.json && !terminal.interactive) log.info(where, message);
          if (anonymous)
            log.warn(
              { setting: 'Host:AnonymousLoopback' },
              'Callers of this machine need no credential and are administrators; no reverse proxy may stand before this service',
            );
          return undefined;
        });
      }),
    );
};
