import sentences from './messages/en.json' with { type: 'json' };

/** The sentences in English: every key there is, and what another language shows where it lacks one. */
export const english = sentences;
