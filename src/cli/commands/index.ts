import { type CommandHost, commandGroup } from '../command-host.ts';
import { groupDescriptions } from '../groups.ts';
import { registerAgents } from './agents.command.ts';
import { registerApprovals } from './approvals.command.ts';
import { registerAttachments } from './attachments.command.ts';
import { registerCompletion } from './completion.command.ts';
import { registerConfig } from './config.command.ts';
import { registerDb } from './db.command.ts';
import { registerDoctor } from './doctor.command.ts';
import { registerGrantsAdd } from './grants-add.command.ts';
import { registerInit } from './init.command.ts';
import { registerKeysCreate } from './keys-create.command.ts';
import { registerOpenapi } from './openapi.command.ts';
import { registerQuickstart } from './quickstart.command.ts';
import { registerRun } from './run.command.ts';
import { registerRunsCompare } from './runs-compare.command.ts';
import { registerRunsReplay } from './runs-replay.command.ts';
import { registerRunsTail } from './runs-tail.command.ts';
import { registerRunsTree } from './runs-tree.command.ts';
import { registerServe } from './serve.command.ts';
import { registerSessionsGet } from './sessions-get.command.ts';
import { registerSkills } from './skills.command.ts';
import { registerTui } from './tui.command.ts';
import { registerVersion } from './version.command.ts';

export const OPERATE_HEADING = 'Look after it:';

/** Every hand-written command, in the order of the help. */
export const registerCommands = (host: CommandHost): void => {
  const { program } = host;
  program.commandsGroup('Start:');
  registerQuickstart(host);
  registerInit(host);
  registerServe(host);
  program.commandsGroup('Work:');
  registerAgents(host);
  registerRun(host);
  registerTui(host);
  const runs = commandGroup(program, 'runs', groupDescriptions['runs'] ?? '');
  registerRunsTail(runs, host);
  registerRunsTree(runs, host);
  registerRunsCompare(runs, host);
  registerRunsReplay(runs, host);
  registerSessionsGet(commandGroup(program, 'sessions', groupDescriptions['sessions'] ?? ''), host);
  registerAttachments(commandGroup(program, 'attachments', groupDescriptions['attachments'] ?? ''), host);
  registerSkills(commandGroup(program, 'skills', groupDescriptions['skills'] ?? ''), host);
  registerGrantsAdd(commandGroup(program, 'grants', groupDescriptions['grants'] ?? ''), host);
  registerApprovals(commandGroup(program, 'approvals', groupDescriptions['approvals'] ?? ''), host);
  registerKeysCreate(commandGroup(program, 'keys', groupDescriptions['keys'] ?? ''), host);
  program.commandsGroup(OPERATE_HEADING);
  registerDoctor(host);
  registerConfig(host);
  registerDb(host);
  registerOpenapi(host);
  registerCompletion(host);
  registerVersion(host);
  // What is generated from the operation table comes here.
  program.commandsGroup('Work:');
};
