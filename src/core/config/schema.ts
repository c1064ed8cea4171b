import { group, type ValueOf } from './schema-nodes.ts';
import { coreSettings } from './sections/core.settings.ts';
import { evaluationSettings } from './sections/evaluation.settings.ts';
import { extensionSettings } from './sections/extension.settings.ts';
import { hostSettings } from './sections/host.settings.ts';
import { limitSettings } from './sections/limits.settings.ts';
import { modelSettings } from './sections/models.settings.ts';
import { networkSettings } from './sections/network.settings.ts';
import { persistenceSettings } from './sections/persistence.settings.ts';
import { providerSettings } from './sections/providers.settings.ts';
import { recordingSettings } from './sections/recording.settings.ts';
import { retentionSettings } from './sections/retention.settings.ts';
import { schedulingSettings } from './sections/scheduling.settings.ts';
import { skillSettings } from './sections/skills.settings.ts';

/** Every setting there is. The key of a setting is its path, joined with colons. Design: docs/design/settings.md. */
export const configSchema = group('Settings of the agent control plane.', {
  Host: group('How the service is mounted: address, access, code to load.', hostSettings),
  Service: group('What the service does.', {
    ...coreSettings,
    ...persistenceSettings,
    ...providerSettings,
    ...modelSettings,
    ...recordingSettings,
    ...schedulingSettings,
    ...limitSettings,
    ...networkSettings,
    ...skillSettings,
    ...extensionSettings,
    ...evaluationSettings,
    ...retentionSettings,
  }),
});

/** The effective configuration. Durations are milliseconds, sizes bytes, paths absolute. */
export type Config = ValueOf<typeof configSchema>;
