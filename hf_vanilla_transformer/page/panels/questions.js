export default { id: "questions", code: [], render(root, context) {} };
