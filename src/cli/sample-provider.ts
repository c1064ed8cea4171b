/** The scripted provider that `acp quickstart` registers, and that its sample agent names. */
export const sampleProvider = 'demo';
