export default { id: "experiments", code: [], render(root, context) {} };
