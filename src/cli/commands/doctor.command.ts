import type { StyleName } from '../../text/style.ts';
import { padText, safeText } from '../../text/text-width.ts';
import type { CommandHost } from '../command-host.ts';
import { runDiagnosis } from '../diagnosis/diagnosis.ts';
import type { Finding, FindingStatus } from '../diagnosis/finding.ts';

const failedExitCode = 1;

const marks: Readonly<Record<FindingStatus, StyleName>> = { ok: 'green', warn: 'yellow', fail: 'red', skip: 'dim' };

/** `acp doctor`: everything that a service here depends on, looked at without changing anything. */
export const registerDoctor = (host: CommandHost): void => {
  host.program
    .command('doctor')
    .description(
      'check configuration, store, providers, tools, disk and network exposure; exit code 1 if a check fails',
    )
    .action(
      host.act(async (session) => {
        const { terminal, globals } = session;
        const findings: Finding[] = [];
        for await (const finding of runDiagnosis(session)) {
          findings.push(finding);
          if (globals.json) continue;
          const mark = terminal.style[marks[finding.status]](finding.status.padEnd(4));
          const [first = '', ...rest] = safeText(finding.message).split('\n');
          await terminal.write(`${mark}  ${padText(finding.check, 10)}  ${first}\n`);
          for (const line of rest) await terminal.write(`${' '.repeat(18)}${line.trimStart()}\n`);
        }
        if (globals.json) await session.print(findings);
        return findings.some(({ status }) => status === 'fail') ? failedExitCode : 0;
      }),
    );
};
