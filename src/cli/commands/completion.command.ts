import { AcpError } from '../../contract/errors.ts';
import type { CommandHost } from '../command-host.ts';
import { completionScript, isShell, shells } from '../completion/completion-script.ts';

/** `acp completion`: a script that asks this program what may follow. */
export const registerCompletion = (host: CommandHost): void => {
  host.program
    .command('completion')
    .description('print a completion script: `source <(acp completion bash)`')
    .argument('<shell>', shells.join(', '))
    .action(
      host.act(async ({ terminal }, { args }) => {
        const shell = String(args[0]);
        if (!isShell(shell))
          throw new AcpError('validation-failed', `There is completion for ${shells.join(', ')}, not for "${shell}".`);
        await terminal.write(completionScript(shell));
      }),
    );
};
